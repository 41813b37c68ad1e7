-- Idle marks are deleted, and a floor takes their place: in the transaction that deletes a mark the
-- floor rises to its token. Without a mark, only a token above the floor is claimed.

CREATE TABLE fenced_forgotten (
  only_row        INTEGER PRIMARY KEY NOT NULL CHECK (only_row = 1),
  marks           INTEGER NOT NULL            -- the greatest token of a forgotten mark
                  CHECK (typeof(marks) = 'integer' AND marks BETWEEN 0 AND 999999999999999),
  longest_hold_ms INTEGER NOT NULL            -- that a client which claims by hand has stated
                  CHECK (longest_hold_ms BETWEEN 3600000 AND 31622400000)
);
INSERT INTO fenced_forgotten (only_row, marks, longest_hold_ms) VALUES (1, 0, 3600000);

-- For claims by any client: without a mark, a token up to the floor changes nothing.
CREATE TRIGGER fenced_above_floor BEFORE INSERT ON fenced_high_water_mark
WHEN NEW.token BETWEEN 1 AND (SELECT marks FROM fenced_forgotten)
  AND NOT EXISTS (SELECT 1 FROM fenced_high_water_mark m WHERE m.resource = NEW.resource)
BEGIN
  SELECT RAISE(IGNORE);
END;
