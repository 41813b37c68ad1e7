-- Idle marks are deleted, and a floor takes their place: in the transaction that deletes a mark the
-- floor rises to its token. Without a mark, only a token above the floor is claimed. Such a claim
-- shares the row of the floor, and a transaction that deletes marks has it alone.

CREATE TABLE IF NOT EXISTS fenced_forgotten (
  only_row        TINYINT NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_row = 1),
  marks           BIGINT NOT NULL CHECK (marks BETWEEN 0 AND 999999999999999),
  longest_hold_ms BIGINT NOT NULL CHECK (longest_hold_ms BETWEEN 3600000 AND 31622400000)
) ENGINE = InnoDB;
INSERT IGNORE INTO fenced_forgotten (only_row, marks, longest_hold_ms) VALUES (1, 0, 3600000);

-- As before; and without a mark, a token up to the floor is not claimed. A client that claims by
-- itself then learns the floor.
SET @fenced_sql_mode = @@sql_mode;
SET sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

DROP PROCEDURE IF EXISTS fenced_claim_now;
CREATE PROCEDURE fenced_claim_now(
  IN its_resource VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin, IN its_token BIGINT,
  IN its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_issuer VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, OUT its_claimed TINYINT
)
claim: BEGIN
  DECLARE service, found_issuer VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE found_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE found_token, floor BIGINT;
  DECLARE is_there TINYINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  SET its_claimed = 0;
  IF its_token > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 10 + 8640000000 THEN
    LEAVE claim;
  END IF;
  SELECT name INTO service FROM fenced_lock_service
    /*M!100600 LOCK IN SHARE MODE SKIP LOCKED */ /*!80000 FOR SHARE SKIP LOCKED */;
  IF service IS NULL THEN
    SELECT EXISTS (SELECT 1 FROM fenced_lock_service) INTO is_there;
    IF NOT is_there THEN
      INSERT IGNORE INTO fenced_lock_service (name) VALUES (its_issuer);
      SET service = IF(ROW_COUNT() = 1, its_issuer, NULL);
    END IF;
  END IF;
  IF service = its_issuer THEN
    SELECT token, holder, issuer INTO found_token, found_holder, found_issuer
      FROM fenced_high_water_mark WHERE resource = its_resource FOR UPDATE SKIP LOCKED;
    IF found_token IS NULL THEN
      SELECT EXISTS (SELECT 1 FROM fenced_high_water_mark WHERE resource = its_resource)
        INTO is_there;
      IF NOT is_there THEN
        SELECT marks INTO floor FROM fenced_forgotten
          /*M!100600 LOCK IN SHARE MODE SKIP LOCKED */ /*!80000 FOR SHARE SKIP LOCKED */;
        IF its_token > floor THEN
          INSERT IGNORE INTO fenced_high_water_mark (resource, token, holder, issuer)
            VALUES (its_resource, its_token, its_holder, its_issuer);
          SET its_claimed = ROW_COUNT() = 1;
        END IF;
      END IF;
    ELSEIF found_issuer = its_issuer AND found_token < its_token THEN
      UPDATE fenced_high_water_mark
        SET holder = its_holder, claimed_at = SYSDATE(3), token = its_token
        WHERE resource = its_resource;
      SET its_claimed = 1;
    ELSEIF found_issuer = its_issuer AND found_token = its_token THEN
      SET its_claimed = found_holder = its_holder;
    END IF;
  END IF;
END;

SET sql_mode = @fenced_sql_mode;
