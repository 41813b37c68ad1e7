-- Tables that take no write without a fence. Their triggers are made by the program, one for each
-- event, because SQLite has no functions.

-- The tables that have such triggers. If there is none, transactions need not note their grants.
CREATE TABLE fenced_protected (
  name TEXT PRIMARY KEY NOT NULL
) WITHOUT ROWID;
