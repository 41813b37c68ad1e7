-- All that is held or waited for, or one lease of it.
-- ?1 now, ?2 how long a waiter may be silent, in microseconds, ?3 the only lease, or null
WITH living AS (
  SELECT resource, token, holder, expires_at, metadata FROM main.fenced_lease
  WHERE holder <> '' AND expires_at > ?1 AND (?3 IS NULL OR resource = ?3)
), waiting AS (
  SELECT resource, count(DISTINCT holder) AS waiters FROM main.fenced_waiter
  WHERE wait_until > ?1 AND abs(?1 - seen_at) <= ?2 AND (?3 IS NULL OR resource = ?3)
  GROUP BY resource
)
SELECT l.resource, l.token, l.holder, (l.expires_at - ?1) / 1000 AS left_ms, l.metadata,
       coalesce(w.waiters, 0) AS waiters
FROM living l LEFT JOIN waiting w USING (resource)
UNION ALL
SELECT w.resource, NULL, NULL, NULL, NULL, w.waiters
FROM waiting w WHERE NOT EXISTS (SELECT 1 FROM living l WHERE l.resource = w.resource)
