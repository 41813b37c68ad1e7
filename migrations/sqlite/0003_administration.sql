-- The log of administrators' changes to issuer and marks, with their reasons. A file has no logins,
-- so an administrator is known only if the reason names one.
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
