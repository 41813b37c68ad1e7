-- The leases of the processes of one host. Each request is one transaction under BEGIN IMMEDIATE,
-- so it is the only writer of the file while it decides. Times are microseconds of Unix time, by
-- the clock of the host. The clock is read after the transaction has begun.
--
-- A lease is named after its resource, or "PREFIX RESOURCE". The column "holder" has the SHA-256,
-- as 64 hex digits, of the text that a holder presents; '' means that the lease is free.

CREATE TABLE IF NOT EXISTS fenced_lease (
  resource   TEXT PRIMARY KEY NOT NULL
             CHECK (typeof(resource) = 'text' AND length(resource) BETWEEN 1 AND 321
                    AND resource NOT GLOB '*[^ !-~]*'),
  token      INTEGER NOT NULL             -- of this lease, or of the last one
             CHECK (typeof(token) = 'integer' AND token BETWEEN 1 AND 999999999999999),
  revocation INTEGER NOT NULL DEFAULT 0   -- the token of the last release by force
             CHECK (typeof(revocation) = 'integer' AND revocation BETWEEN 0 AND 999999999999999),
  holder     TEXT NOT NULL
             CHECK (typeof(holder) = 'text' AND length(holder) IN (0, 64)
                    AND holder NOT GLOB '*[^0-9a-f]*'),
  expires_at INTEGER NOT NULL CHECK (typeof(expires_at) = 'integer'),
  attempts   TEXT NOT NULL                -- that share this lease, with spaces between them
             CHECK (typeof(attempts) = 'text' AND length(attempts) <= 65000
                    AND attempts NOT GLOB '*[^ !-~]*'),
  metadata   TEXT
             CHECK (metadata IS NULL OR typeof(metadata) = 'text' AND length(metadata) <= 1024)
) WITHOUT ROWID;

-- Each grant of a resource has a greater token than all before it, by a client of any language.
CREATE TRIGGER IF NOT EXISTS fenced_lease_rises BEFORE UPDATE ON fenced_lease
WHEN NEW.token < OLD.token
  OR NEW.holder NOT IN ('', OLD.holder) AND NEW.token <= max(OLD.token, OLD.revocation)
BEGIN
  SELECT RAISE(ABORT, 'the token of a lease has to rise');
END;

-- The waiters, in the order of their tickets.
CREATE TABLE IF NOT EXISTS fenced_waiter (
  ticket     INTEGER PRIMARY KEY AUTOINCREMENT,
  resource   TEXT NOT NULL,
  holder     TEXT NOT NULL,
  attempt    TEXT NOT NULL,
  wait_until INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  UNIQUE (resource, holder, attempt)
);

-- Acquisitions that ended two minutes ago or less. Late copies of their requests get nothing.
CREATE TABLE IF NOT EXISTS fenced_tombstone (
  resource TEXT NOT NULL,
  holder   TEXT NOT NULL,
  attempt  TEXT NOT NULL,                 -- '': the whole acquisition
  token    INTEGER NOT NULL,              -- of the lease that was released; 0: it was lost
  ended_at INTEGER NOT NULL,
  PRIMARY KEY (resource, holder, attempt)
) WITHOUT ROWID;
-- When another holder takes a lease over, the lease had run out, so its acquisition has ended.
CREATE TRIGGER IF NOT EXISTS fenced_lease_lost BEFORE UPDATE OF holder ON fenced_lease
WHEN OLD.holder <> '' AND NEW.holder NOT IN ('', OLD.holder)
BEGIN
  INSERT OR REPLACE INTO fenced_tombstone (resource, holder, attempt, token, ended_at) VALUES
    (OLD.resource, OLD.holder, '', 0,
     CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER));
END;
CREATE INDEX IF NOT EXISTS fenced_tombstone_by_time ON fenced_tombstone (ended_at);

-- Leases that an operator ended two minutes ago or less. The same call again gets the same answer.
CREATE TABLE IF NOT EXISTS fenced_forced_release (
  resource   TEXT NOT NULL,
  token      INTEGER NOT NULL,            -- of the lease that was ended
  revocation INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  PRIMARY KEY (resource, token)
) WITHOUT ROWID;

-- Rows of idle resources are forgotten. The floor is the greatest token that any of them had.
CREATE TABLE IF NOT EXISTS fenced_lease_floor (
  only_row INTEGER PRIMARY KEY NOT NULL CHECK (only_row = 1),
  token    INTEGER NOT NULL
           CHECK (typeof(token) = 'integer' AND token BETWEEN 0 AND 999999999999999)
);
INSERT OR IGNORE INTO fenced_lease_floor (only_row, token) VALUES (1, 0);

-- If the first lease of a resource has a token at or below the floor, this trigger makes a row with
-- the token of the floor. The statement, in any language, then finds the row and goes on above its
-- token. A statement that ignores the row is refused.
CREATE TRIGGER IF NOT EXISTS fenced_lease_above_floor BEFORE INSERT ON fenced_lease
WHEN NEW.holder <> '' AND NEW.token <= (SELECT token FROM fenced_lease_floor)
  AND NOT EXISTS (SELECT 1 FROM fenced_lease l WHERE l.resource = NEW.resource)
BEGIN
  INSERT INTO fenced_lease (resource, token, holder, expires_at, attempts)
    SELECT NEW.resource, f.token, '', 0, '' FROM fenced_lease_floor f;
END;
