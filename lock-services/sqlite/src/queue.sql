-- The waiters of a lease, after those that are silent were dropped.
-- ?1 lease, ?2 kept digest of the holder
SELECT coalesce((SELECT o.holder FROM main.fenced_waiter o WHERE o.resource = ?1
                 ORDER BY o.ticket LIMIT 1) <> ?2, 0) AS is_behind,
       coalesce(max(w.holder = ?2), 0) AS is_in,
       count(DISTINCT CASE WHEN w.holder <> ?2 THEN w.holder END) AS others
FROM main.fenced_waiter w WHERE w.resource = ?1
