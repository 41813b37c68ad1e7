-- Idle marks are deleted, and a floor takes their place: in the transaction that deletes a mark the
-- floor rises to its token. Without a mark, only a token above the floor is claimed. Such a claim
-- shares the row of the floor, and a transaction that deletes marks has it alone. Rows of leases go
-- likewise, with a floor of their own.

CREATE TABLE IF NOT EXISTS fenced_forgotten (
  only_row        TINYINT NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_row = 1),
  marks           BIGINT NOT NULL CHECK (marks BETWEEN 0 AND 999999999999999),
  longest_hold_ms BIGINT NOT NULL CHECK (longest_hold_ms BETWEEN 3600000 AND 31622400000)
) ENGINE = InnoDB;
INSERT IGNORE INTO fenced_forgotten (only_row, marks, longest_hold_ms) VALUES (1, 0, 3600000);

-- The greatest token of a lease whose row was forgotten. A grant without a row is above it.
CREATE TABLE IF NOT EXISTS fenced_lease_floor (
  only_row TINYINT NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_row = 1),
  token    BIGINT NOT NULL CHECK (token BETWEEN 0 AND 999999999999999)
) ENGINE = InnoDB;
INSERT IGNORE INTO fenced_lease_floor (only_row, token) VALUES (1, 0);

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

-- As before; and the row begins above the floor, and at the clock, so that it stays for a while.
-- There may be tombstones of an earlier row.
DROP PROCEDURE IF EXISTS fenced_make_lease;
CREATE PROCEDURE fenced_make_lease(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin
)
BEGIN
  DECLARE floor BIGINT;
  DECLARE CONTINUE HANDLER FOR 1062 BEGIN END;
  IF COALESCE(its_name NOT REGEXP '^([A-Za-z0-9._:-]+ )?[^ ]+$' OR its_name REGEXP '[^ -~]'
              OR LOCATE('"', its_name) > 0 OR LOCATE(x'5C', its_name) > 0
              OR LOCATE(' ', its_name) > 65
              OR CHAR_LENGTH(its_name) > 256 + LOCATE(' ', its_name), TRUE) THEN
    CALL fenced_refuse(
      'a resource has 1 to 256 visible ASCII characters, and a prefix 1 to 64');
  END IF;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  SELECT token INTO floor FROM fenced_lease_floor LOCK IN SHARE MODE;
  INSERT INTO fenced_lease (resource, token, attempts, is_quiet)
    VALUES (its_name, GREATEST(floor, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 10),
            '', 0);
  COMMIT;
END;

-- Forgets rows of leases, by the order of their resources, from after a name on: "most" at most,
-- and their number is returned. last_name is where to go on; '': there are no more. A row is idle
-- if it is free, and its token and its waiters are as old as that. Rows that are locked stay.
--
-- For operators: grant EXECUTE to no application.
CREATE PROCEDURE IF NOT EXISTS fenced_forget_leases(
  IN older_than_ms BIGINT, IN after VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  IN most INT, OUT forgotten BIGINT,
  OUT last_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE least_ms, before_us, seen, top BIGINT;
    DECLARE its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE is_over, is_idle TINYINT DEFAULT 0;
    DECLARE by_name CURSOR FOR
      SELECT l.resource FROM fenced_lease l
        WHERE l.resource > after AND l.resource <= last_name
          AND GREATEST(l.token, l.revocation) <= top AND (l.holder = '' OR l.end_us < before_us);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    START TRANSACTION;
    SELECT f.longest_hold_ms INTO least_ms FROM fenced_forgotten f;
    IF COALESCE(older_than_ms < least_ms, TRUE) THEN
      CALL fenced_refuse('older_than_ms is less than the longest hold, which is an hour at least');
    END IF;
    SET before_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) - older_than_ms * 1000,
        forgotten = 0;
    SELECT COUNT(*), COALESCE(MAX(o.resource), ''), COALESCE(MAX(o.token), 0)
      INTO seen, last_name, top FROM (
        SELECT l.resource, GREATEST(l.token, l.revocation) AS token FROM fenced_lease l
          WHERE l.resource > after AND GREATEST(l.token, l.revocation) < before_us DIV 10
            AND (l.holder = '' OR l.end_us < before_us)
          ORDER BY l.resource LIMIT most) o;
    -- Before the deletions: a grant that finds no row waits for this transaction here.
    INSERT INTO fenced_lease_floor (only_row, token) VALUES (1, top)
      ON DUPLICATE KEY UPDATE token = GREATEST(token, top);
    SET is_over = 0;
    OPEN by_name;
    l: LOOP
      FETCH by_name INTO its_name;
      IF is_over THEN LEAVE l; END IF;
      SET is_idle = 0;
      SELECT NOT EXISTS (SELECT 1 FROM fenced_waiter w
                         WHERE w.resource = its_name AND w.seen_us >= before_us)
        INTO is_idle FROM fenced_lease f
        WHERE f.resource = its_name AND GREATEST(f.token, f.revocation) <= top
          AND (f.holder = '' OR f.end_us < before_us)
        FOR UPDATE SKIP LOCKED;
      IF is_idle THEN
        DELETE FROM fenced_waiter WHERE resource = its_name;
        DELETE FROM fenced_lease WHERE resource = its_name;
        SET forgotten = forgotten + 1;
      END IF;
      SET is_over = 0;
    END LOOP;
    CLOSE by_name;
    COMMIT;
    IF seen < most THEN
      SET last_name = '';
    END IF;
  END;
END;

SET sql_mode = @fenced_sql_mode;
