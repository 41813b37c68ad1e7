-- The grants of the transaction that is under way: there is one writer at a time. It notes this
-- when it begins and deletes it before it commits, so no other transaction ever sees a row.
CREATE TABLE fenced_open_transaction (
  resource TEXT PRIMARY KEY NOT NULL,
  token    INTEGER NOT NULL
) WITHOUT ROWID;
