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

-- What administrators did to issuer and marks, and why. Nobody logs in to a file, so who it was is
-- in the reason, if anywhere.
CREATE TABLE fenced_admin_log (
  id          INTEGER PRIMARY KEY NOT NULL,
  done_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  done_by     TEXT,
  action      TEXT NOT NULL CHECK (action IN ('seal', 'seal mark', 'reset mark')),
  resource    TEXT,
  from_token  INTEGER,
  to_token    INTEGER,
  from_issuer TEXT,
  to_issuer   TEXT,
  reason      TEXT NOT NULL CHECK (trim(reason) <> '')
);

-- Tables that take no write without a fence. Their triggers are made by the program, one for each
-- event, because SQLite has no functions.

-- The tables that have such triggers. If there is none, transactions need not note their grants.
CREATE TABLE fenced_protected (
  name TEXT PRIMARY KEY NOT NULL
) WITHOUT ROWID;

-- The grants of the transaction that is under way: there is one writer at a time. It notes this
-- when it begins and deletes it before it commits, so nobody else ever sees a row.
CREATE TABLE fenced_open_transaction (
  resource TEXT PRIMARY KEY NOT NULL,
  token    INTEGER NOT NULL
) WITHOUT ROWID;

-- Jobs that run once per slot. A job is the resource 'job:NAME', for all of its slots, and only who
-- has its fence may write here: the program sees to that.

-- The slots that are done, have saved progress, or have failed.
CREATE TABLE fenced_job_run (
  job        TEXT NOT NULL,
  slot       TEXT NOT NULL,
  done_token INTEGER,                      -- null: not done
  done_at    TEXT,
  steps      INTEGER NOT NULL DEFAULT 0,   -- that are committed
  progress   TEXT,                         -- what the last of them saved
  attempts   INTEGER NOT NULL DEFAULT 0,   -- that have failed
  last_error TEXT,
  retry_at   TEXT,
  PRIMARY KEY (job, slot)
) WITHOUT ROWID;

-- For each job the time below which its slots are forgotten: they count as done.
CREATE TABLE fenced_forgotten_job (
  job        TEXT PRIMARY KEY NOT NULL,
  below_slot TEXT NOT NULL
) WITHOUT ROWID;
