-- Idle marks are deleted, and a floor takes their place: in the transaction that deletes a mark the
-- floor rises to its token. Without a mark, only a token above the floor is claimed. Such a claim
-- shares the row of the floor, and a transaction that deletes marks has it alone.

CREATE TABLE IF NOT EXISTS fenced_forgotten (
  only_row        TINYINT NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_row = 1),
  marks           BIGINT NOT NULL CHECK (marks BETWEEN 0 AND 999999999999999),
  longest_hold_ms BIGINT NOT NULL CHECK (longest_hold_ms BETWEEN 3600000 AND 31622400000)
) ENGINE = InnoDB;
INSERT IGNORE INTO fenced_forgotten (only_row, marks, longest_hold_ms) VALUES (1, 0, 3600000);
