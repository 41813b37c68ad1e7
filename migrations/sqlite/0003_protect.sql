-- Tables that take no write without a fence. Their triggers are made by the program, one for each
-- event, because SQLite has no functions.

-- The tables that have such triggers. If there is none, transactions need not note what they enter.
CREATE TABLE fenced_protected (
  name TEXT PRIMARY KEY NOT NULL
) WITHOUT ROWID;

-- What the transaction that is under way has entered: there is one writer at a time. It notes this
-- when it begins and deletes it before it commits, so nobody else ever sees a row.
CREATE TABLE fenced_entered (
  resource TEXT PRIMARY KEY NOT NULL,
  token    INTEGER NOT NULL
) WITHOUT ROWID;
