-- ?1 a JSON array of attempts, ?2 now, ?3 how long a waiter may be silent, in microseconds
SELECT w.resource, w.attempt, w.holder,
       coalesce(l.holder = w.holder, 0) AS is_own,
       CASE l.holder WHEN '' THEN 0 ELSE coalesce(l.expires_at, 0) END AS held_until,
       NOT EXISTS (SELECT 1 FROM main.fenced_waiter o
                   WHERE o.resource = w.resource AND o.ticket < w.ticket AND o.holder <> w.holder
                     AND o.wait_until > ?2 AND abs(?2 - o.seen_at) <= ?3) AS is_first
FROM main.fenced_waiter w LEFT JOIN main.fenced_lease l ON l.resource = w.resource
WHERE w.attempt IN (SELECT value FROM json_each(?1))
