-- The store rule for SQLite: one high-water mark per protected resource. Marks are read and written
-- under BEGIN IMMEDIATE only, which makes the transaction the one writer of the file.
--
-- The column "holder" has the SHA-256, as 64 hex digits, of the text that a holder presents.
-- Programs compute it before they write it. So a reader of the file, of its log or of a backup sees
-- which marks have one holder, and cannot act as that holder, neither here nor at the lock service.
--
-- The tables do not enforce the rule: a user who may write the file can write past it.

-- The one lock service whose tokens are taken. The first claim sets it.
CREATE TABLE fenced_lock_service (
  only_row INTEGER PRIMARY KEY NOT NULL CHECK (only_row = 1),
  name     TEXT NOT NULL
           CHECK (typeof(name) = 'text' AND length(name) BETWEEN 1 AND 64
                  AND name NOT GLOB '*[^-A-Za-z0-9_.:]*')
);

-- The greatest token claimed per resource, and by whom. It never falls; rows are never deleted.
CREATE TABLE fenced_high_water_mark (
  resource   TEXT PRIMARY KEY NOT NULL
             CHECK (typeof(resource) = 'text' AND length(resource) BETWEEN 1 AND 256
                    AND resource NOT GLOB '*[^!-~]*' AND instr(resource, '"') = 0
                    AND instr(resource, char(92)) = 0),
  token      INTEGER NOT NULL
             CHECK (typeof(token) = 'integer' AND token BETWEEN 1 AND 999999999999999),
  holder     TEXT NOT NULL CHECK (typeof(holder) = 'text'),
  issuer     TEXT NOT NULL
             CHECK (typeof(issuer) = 'text' AND length(issuer) BETWEEN 1 AND 64
                    AND issuer NOT GLOB '*[^-A-Za-z0-9_.:]*'),
  claimed_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) WITHOUT ROWID;
