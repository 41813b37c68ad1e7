-- Everything that one request has to know about a lease, in one row. ?1 lease, ?2 kept digest of
-- the holder, ?3 attempt, or '' for the whole acquisition
SELECT coalesce(max(l.token, l.revocation), f.token) AS last_token,
       l.token, coalesce(l.holder, '') AS holder, l.expires_at, l.attempts,
       EXISTS (SELECT 1 FROM main.fenced_tombstone t
               WHERE t.resource = ?1 AND t.holder = ?2 AND t.attempt IN ('', ?3)) AS has_ended,
       (SELECT t.token FROM main.fenced_tombstone t
        WHERE t.resource = ?1 AND t.holder = ?2 AND t.attempt = ?3) AS ended_with,
       EXISTS (SELECT 1 FROM main.fenced_waiter w WHERE w.resource = ?1) AS has_queue
FROM (SELECT coalesce(max(token), 0) AS token FROM main.fenced_lease_floor) f
LEFT JOIN main.fenced_lease l ON l.resource = ?1
