-- A fenced deposit from the shell of SQLite: sqlite3 -bail FILE < fenced_deposit_sqlite.sql
-- Prints the token, or nothing if the lease is held. It takes no place in the queue.

-- Our name: 64 hex digits that no other client has. It is in the file, so it is no secret there.
CREATE TEMP TABLE us AS SELECT 'account:1' AS resource, lower(hex(randomblob(32))) AS holder;
CREATE TEMP VIEW clock AS
  SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) AS now;

-- For 30 s, unless it is held or a waiter is alive.
BEGIN IMMEDIATE;
INSERT INTO fenced_lease (resource, token, holder, expires_at, attempts)
  SELECT resource, now / 10, holder, now + 30000000, 'try-1' FROM us, clock
  WHERE NOT EXISTS (SELECT 1 FROM fenced_waiter w WHERE w.resource = us.resource
                    AND w.wait_until > now AND abs(now - w.seen_at) <= 3000000)
  ON CONFLICT DO UPDATE
    SET token = max(token + 1, revocation + 1, excluded.token), holder = excluded.holder,
        expires_at = excluded.expires_at, attempts = excluded.attempts, metadata = NULL
    WHERE holder = '' OR expires_at <= (SELECT now FROM clock);
CREATE TEMP TABLE lease AS
  SELECT token, l.resource, l.holder FROM fenced_lease l JOIN us USING (resource, holder);
-- The claim, in the same transaction: from here on every older holder is refused.
INSERT INTO fenced_lock_service (only_row, name) VALUES (1, 'sqlite') ON CONFLICT DO NOTHING;
INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
  SELECT resource, token, holder, name FROM lease, fenced_lock_service WHERE name = 'sqlite'
  ON CONFLICT DO UPDATE SET token = excluded.token, holder = excluded.holder
    WHERE excluded.token > token;
COMMIT;
SELECT token FROM lease;

-- A fenced write: only if the mark is still ours. The same holds at each later transaction.
BEGIN IMMEDIATE;
UPDATE account SET balance = balance + 10
  WHERE id = 1 AND EXISTS (SELECT 1 FROM fenced_high_water_mark m
                           JOIN lease USING (resource, token, holder));
COMMIT;

-- The release.
BEGIN IMMEDIATE;
UPDATE fenced_lease SET holder = '', expires_at = 0, attempts = '', metadata = NULL
  WHERE (resource, token, holder) IN (SELECT resource, token, holder FROM lease);
COMMIT;
