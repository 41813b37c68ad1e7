-- Ordered writes: a holder numbers its transactions, and those that come late are refused.

-- The number of the last transaction per resource, of the last grant that counted.
CREATE TABLE fenced_sequence (
  resource TEXT PRIMARY KEY NOT NULL,
  token    INTEGER NOT NULL,
  holder   TEXT NOT NULL,
  seq      INTEGER NOT NULL CHECK (seq BETWEEN 1 AND 999999999999999)
) WITHOUT ROWID;
