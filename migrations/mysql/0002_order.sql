-- Ordered writes: a holder numbers its transactions, and those that come late are refused.

-- The number of the last transaction per resource, of the last grant that counted; and the name of
-- that transaction, by which it knows that its number was taken.
CREATE TABLE IF NOT EXISTS fenced_sequence (
  resource VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  token    BIGINT NOT NULL,
  holder   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq      BIGINT NOT NULL CHECK (seq BETWEEN 1 AND 999999999999999),
  tx       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
) ENGINE = InnoDB;
