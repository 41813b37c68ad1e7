-- ?1 a JSON array of attempts, ?2 now, ?3 how long a waiter may be silent, in microseconds
UPDATE main.fenced_waiter AS w SET seen_at = ?2
WHERE w.attempt IN (SELECT value FROM json_each(?1))
  AND (EXISTS (SELECT 1 FROM main.fenced_lease l
               WHERE l.resource = w.resource AND l.holder <> '' AND l.expires_at > ?2)
       OR EXISTS (SELECT 1 FROM main.fenced_waiter o
                  WHERE o.resource = w.resource AND o.ticket < w.ticket AND o.holder <> w.holder
                    AND o.wait_until > ?2 AND abs(?2 - o.seen_at) <= ?3))
