-- The audit: what was committed under which grant. Off unless the store is told otherwise.

-- One row per committed transaction and resource. Nothing here is read by the store: rows may be
-- moved elsewhere or deleted. `tx` is the name of the transaction, which its rows have in common;
-- `holder` is a fingerprint, as in logs. There are no users here.
CREATE TABLE fenced_audit (
  id       INTEGER PRIMARY KEY NOT NULL,
  tx       TEXT NOT NULL,
  began_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  resource TEXT NOT NULL,
  token    INTEGER NOT NULL,
  issuer   TEXT NOT NULL,
  holder   TEXT NOT NULL,
  seq      INTEGER
);
CREATE INDEX fenced_audit_tx ON fenced_audit (tx);
