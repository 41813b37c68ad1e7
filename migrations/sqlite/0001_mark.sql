-- The store rule for SQLite: one high-water mark per protected resource. Marks are read and written
-- under BEGIN IMMEDIATE only, which makes the transaction the one writer of the file.
--
-- A holder is a digest of the secret nonce of one acquisition.

-- The one lock service whose tokens are taken. The first claim sets it.
CREATE TABLE fenced_issuer (
  only_row INTEGER PRIMARY KEY NOT NULL CHECK (only_row = 1),
  name     TEXT NOT NULL
);

-- The greatest token claimed per resource, and by whom. It never falls; rows are never deleted.
CREATE TABLE fenced_mark (
  resource   TEXT PRIMARY KEY NOT NULL,
  token      INTEGER NOT NULL CHECK (token BETWEEN 1 AND 999999999999999),
  holder     TEXT NOT NULL,
  issuer     TEXT NOT NULL,
  claimed_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) WITHOUT ROWID;
