-- LEASES
--
-- This database as lock service: leases with fencing tokens, and a fair queue. Here are the tables
-- and what other procedures call; the next migration has what clients call.
--
-- A lease is named after its resource, or "PREFIX RESOURCE": leases of different prefixes do not
-- see each other. Marks have no prefix. Below, a resource is the name of a lease, with its prefix.
--
-- The row of a resource is its mutex: each call that decides locks that row first, and waiters and
-- tombstones only after it. The row is made in a transaction of its own, because two transactions
-- that both find no row and insert it can deadlock. A renewal skips a locked row.
--
-- Each call is a transaction of its own, at READ COMMITTED, and has ended it when it answers: so no
-- lock is held over a round trip, and a client that is stopped keeps no other client waiting. A
-- call inside a transaction of the caller is refused with error 1568, because the caller's rollback
-- would take the lease back.
--
-- A call reads these settings of its session, and leaves them as they are:
--
--   time_zone                 has to be '+00:00': the clock below is a local time, and the local
--                             time of a zone has an hour twice in autumn
--   innodb_lock_wait_timeout  bounds the wait for a row, in whole seconds
--   lock_wait_timeout         bounds the wait for a table that a backup or an ALTER TABLE locks
--
-- After an error a client sends ROLLBACK, or closes the session: KILL QUERY and max_statement_time
-- end a procedure wherever it is, and its transaction is still open then.
--
-- The clock is SYSDATE(6), the time at which it is read. NOW() and UTC_TIMESTAMP() are the time at
-- which the statement began, before its waits, and SET timestamp moves them. So this needs a server
-- without --sysdate-is-now. Times are whole microseconds since 1970.
--
-- A holder is a text that one acquisition alone knows, an attempt a text for each try of it. A
-- request that is sent again with both finds itself: it gets the same lease, and never a second
-- one. The tables keep the SHA-256 of each, as 64 hex digits. Lists show fingerprints, the first 16
-- of these digits.
--
-- Nearly all cycles find a free lease without a queue, and then read and write one row. The row
-- says in is_quiet whether there may be waiters or tombstones. Each procedure that makes one says
-- so there. Only a grant that has looked sets it again.
--
-- A subquery in SET or IF locks the rows that it reads. So rows are read by SELECT .. INTO.
--
-- Procedures run with the sql_mode of this script. There are no functions, because a server with a
-- binary log lets only administrators make those. All names here begin with fenced_.

SET @fenced_sql_mode = @@sql_mode;
SET sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

-- One row per resource that was ever locked, with its present lease. Tokens never fall.
CREATE TABLE IF NOT EXISTS fenced_lease (
  resource   VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY
             CHECK (resource REGEXP '^([A-Za-z0-9._:-]+ )?[^ ]+$' AND resource NOT REGEXP '[^ -~]'
                    AND LOCATE('"', resource) = 0 AND LOCATE(x'5C', resource) = 0
                    AND LOCATE(' ', resource) <= 65
                    AND CHAR_LENGTH(resource) <= 256 + LOCATE(' ', resource)),
  token      BIGINT NOT NULL,              -- of this lease, or of the last one
  revocation BIGINT NOT NULL DEFAULT 0,    -- the token of the last release by force
  holder     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',  -- '': free
  end_us     BIGINT NOT NULL DEFAULT 0,
  attempts   TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,  -- that share it, with commas
  metadata   VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,  -- a note, for people
  is_quiet   TINYINT NOT NULL              -- it has no waiter and no tombstone
) ENGINE = InnoDB;

-- Those who wait, in the order of their tickets.
CREATE TABLE IF NOT EXISTS fenced_waiter (
  resource      VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  ticket        BIGINT NOT NULL,
  holder        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  attempt       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  client        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,  -- that looks for it
  wait_until_us BIGINT NOT NULL,
  seen_us       BIGINT NOT NULL,
  PRIMARY KEY (resource, ticket),
  KEY (client)
) ENGINE = InnoDB;

-- Acquisitions that ended a minute or two ago: late copies of their requests get nothing.
CREATE TABLE IF NOT EXISTS fenced_tombstone (
  resource VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  holder   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  attempt  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,  -- '': the acquisition
  token    BIGINT NOT NULL,                -- of the lease that was released; 0: it was lost
  minute   BIGINT NOT NULL,                -- it is forgotten two minutes later
  PRIMARY KEY (resource, holder, attempt),
  KEY (minute)
) ENGINE = InnoDB;

-- Leases that an operator ended a minute or two ago: the same call again has the same answer.
CREATE TABLE IF NOT EXISTS fenced_forced_release (
  resource   VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token      BIGINT NOT NULL,              -- of the lease that was ended
  revocation BIGINT NOT NULL,
  minute     BIGINT NOT NULL,              -- it is forgotten two minutes later
  PRIMARY KEY (resource, token),
  KEY (minute)
) ENGINE = InnoDB;

-- Refuses a call, and says why.
CREATE PROCEDURE IF NOT EXISTS fenced_refuse(IN why VARCHAR(128) CHARACTER SET utf8mb4)
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = why;

-- Refuses a server that takes no writes, and a session in another zone. The rights of a definer may
-- be those to write all the same.
CREATE PROCEDURE IF NOT EXISTS fenced_check_session()
BEGIN
  IF CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF') THEN
    SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'the server is read_only';
  END IF;
  IF @@session.time_zone <> '+00:00' THEN
    CALL fenced_refuse('a call of a lease needs SET time_zone = \'+00:00\'');
  END IF;
END;

-- Refuses names that are out of bounds, and returns the name of the lease and the digests that are
-- kept. They are bytes, because a text that is none in its character set becomes another one when
-- it is converted. MariaDB keeps bytes above 127 in a text of ASCII, and shows them as '?'. (The
-- rest of the rule for a resource is looked at when its row is made.)
CREATE PROCEDURE IF NOT EXISTS fenced_check_attempt(
  IN resource VARBINARY(1000), IN holder VARBINARY(1000), IN attempt VARBINARY(1000),
  OUT its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  OUT digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  OUT tried VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin
)
BEGIN
  -- Two texts that differ in blanks at the end are equal.
  IF COALESCE(HEX(resource) NOT REGEXP '^([2-7].)+$' OR RIGHT(resource, 1) = ' '
              OR LENGTH(holder) NOT BETWEEN 1 AND 256 OR LENGTH(attempt) NOT BETWEEN 1 AND 256,
              TRUE) THEN
    CALL fenced_refuse('a resource is ASCII; a holder and an attempt have 1 to 256 bytes');
  END IF;
  SET its_name = CONVERT(resource USING ascii), digest = SHA2(holder, 256),
      tried = SHA2(attempt, 256);
END;

-- Refuses a note that is too long, or hard to show.
CREATE PROCEDURE IF NOT EXISTS fenced_check_metadata(
  IN metadata VARCHAR(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
BEGIN
  IF LENGTH(metadata) > 1024 OR metadata REGEXP '[\\x01-\\x1f\\x7f]' THEN
    CALL fenced_refuse('metadata has at most 1024 bytes and no control characters');
  END IF;
END;

-- Makes the row of a resource, unless there is one, in a transaction of its own.
CREATE PROCEDURE IF NOT EXISTS fenced_make_lease(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin
)
BEGIN
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
  INSERT INTO fenced_lease (resource, token, attempts, is_quiet) VALUES (its_name, 0, '', 1);
  COMMIT;
END;

-- Notes that an acquisition has ended, or an attempt of it. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_bury(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempt VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_token BIGINT, IN now_us BIGINT
)
BEGIN
  INSERT INTO fenced_tombstone (resource, holder, attempt, token, minute)
    VALUES (its_name, its_holder, its_attempt, its_token, now_us DIV 60000000)
    ON DUPLICATE KEY UPDATE minute = VALUES(minute);
  UPDATE fenced_lease SET is_quiet = 0 WHERE resource = its_name;
END;

-- Makes the resource free. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_free(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin
)
UPDATE fenced_lease SET holder = '', end_us = 0, attempts = '', metadata = NULL
  WHERE resource = its_name;

-- Locks the row of a resource, and ends a lease that has run out. It is the mutex until the end of
-- the transaction. Without a row last_token is null.
CREATE PROCEDURE IF NOT EXISTS fenced_lock_lease(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  OUT now_us BIGINT, OUT its_token BIGINT, OUT last_token BIGINT,
  OUT its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  OUT its_end_us BIGINT, OUT its_attempts TEXT CHARACTER SET ascii COLLATE ascii_bin,
  OUT quiet TINYINT
)
BEGIN
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  SELECT token, GREATEST(token, revocation), holder, end_us, attempts, is_quiet
    INTO its_token, last_token, its_holder, its_end_us, its_attempts, quiet
    FROM fenced_lease WHERE resource = its_name FOR UPDATE;
  -- After the wait.
  SET now_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6));
  IF its_holder <> '' AND its_end_us <= now_us THEN
    CALL fenced_bury(its_name, its_holder, '', 0, now_us);
    CALL fenced_free(its_name);
    SET its_holder = '', its_end_us = 0, its_attempts = '', quiet = 0;
  END IF;
END;

-- The holder of the first waiter in the queue that is alive, or null: it is its turn. Those before
-- it are dropped. A sign of life far in the future was given before the clock was set back, and
-- does not count. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_first_waiter(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin, IN now_us BIGINT,
  OUT its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin
)
BEGIN
  DECLARE its_ticket, its_wait_until_us, its_seen_us BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  l: LOOP
    SET its_ticket = NULL, its_holder = NULL;
    SELECT ticket, holder, wait_until_us, seen_us
      INTO its_ticket, its_holder, its_wait_until_us, its_seen_us
      FROM fenced_waiter WHERE resource = its_name ORDER BY ticket LIMIT 1;
    IF its_ticket IS NULL
       OR its_wait_until_us > now_us AND ABS(now_us - its_seen_us) <= 3000000 THEN
      LEAVE l;
    END IF;
    DELETE FROM fenced_waiter WHERE resource = its_name AND ticket = its_ticket;
  END LOOP;
END;

-- Takes a place at the end of the queue, or says that one still waits there. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_enqueue(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempt VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_client VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_wait_ms BIGINT, IN most BIGINT, IN now_us BIGINT,
  OUT its_outcome VARCHAR(16) CHARACTER SET ascii
)
BEGIN
  DECLARE its_ticket, waiters BIGINT;
  DECLARE until_us BIGINT
    DEFAULT COALESCE(now_us + its_wait_ms * 1000, 9223372036854775807);
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  SET its_outcome = 'waiting';
  SELECT ticket INTO its_ticket FROM fenced_waiter
    WHERE resource = its_name AND holder = its_holder AND attempt = its_attempt;
  IF its_ticket IS NOT NULL THEN
    UPDATE fenced_waiter SET seen_us = now_us, wait_until_us = until_us, client = its_client
      WHERE resource = its_name AND ticket = its_ticket;
  ELSEIF most IS NOT NULL THEN
    -- One more attempt of an acquisition that waits takes no more room.
    SELECT COUNT(DISTINCT holder) INTO waiters FROM fenced_waiter
      WHERE resource = its_name AND holder <> its_holder AND wait_until_us > now_us
        AND ABS(now_us - seen_us) <= 3000000;
  END IF;
  IF most <= waiters THEN
    SET its_outcome = 'full';
  ELSEIF its_ticket IS NULL THEN
    INSERT INTO fenced_waiter
        (resource, ticket, holder, attempt, client, wait_until_us, seen_us)
      SELECT its_name, COALESCE(MAX(ticket), 0) + 1, its_holder, its_attempt, its_client,
             until_us, now_us
        FROM fenced_waiter WHERE resource = its_name;
    UPDATE fenced_lease SET is_quiet = 0 WHERE resource = its_name;
  END IF;
END;

-- Whether this acquisition, or this attempt of it, has ended. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_has_ended(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempt VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, OUT ended TINYINT
)
SELECT EXISTS (
  SELECT 1 FROM fenced_tombstone
  WHERE resource = its_name AND holder = its_holder AND attempt IN ('', its_attempt)) INTO ended;

-- Takes an attempt out of the queue. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_leave(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempt VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin
)
DELETE FROM fenced_waiter
  WHERE resource = its_name AND holder = its_holder AND attempt = its_attempt;

-- Lets one more attempt share the lease, unless it is full. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_join(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempts TEXT CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempt VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  INOUT its_outcome VARCHAR(16) CHARACTER SET ascii
)
BEGIN
  IF FIND_IN_SET(its_attempt, its_attempts) = 0 THEN
    IF CHAR_LENGTH(its_attempts) >= 64999 THEN
      SET its_outcome = 'full';
    ELSE
      UPDATE fenced_lease SET attempts = CONCAT(attempts, ',', its_attempt)
        WHERE resource = its_name;
    END IF;
  END IF;
END;

-- Takes an attempt out of a lease, which ends with the last one. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_without_attempt(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempts TEXT CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempt VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin
)
BEGIN
  DECLARE rest TEXT CHARACTER SET ascii COLLATE ascii_bin DEFAULT
    TRIM(BOTH ',' FROM REPLACE(CONCAT(',', its_attempts, ','), CONCAT(',', its_attempt, ','), ','));
  IF rest <> '' THEN
    UPDATE fenced_lease SET attempts = rest WHERE resource = its_name;
  ELSE
    CALL fenced_free(its_name);
  END IF;
END;

-- Gives a free resource to this attempt. Null: there are no tokens left. Under the mutex.
CREATE PROCEDURE IF NOT EXISTS fenced_grant(
  IN its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin, IN last_token BIGINT,
  IN its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_attempt VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_ttl_ms BIGINT, IN at_least BIGINT,
  IN its_metadata VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN quiet TINYINT, IN now_us BIGINT, OUT granted BIGINT
)
BEGIN
  SET granted = GREATEST(last_token + 1, now_us DIV 10, at_least);
  IF granted > 999999999999999 THEN
    SET granted = NULL;
  ELSE
    IF NOT quiet THEN
      SELECT NOT EXISTS (SELECT 1 FROM fenced_waiter WHERE resource = its_name)
        AND NOT EXISTS (SELECT 1 FROM fenced_tombstone WHERE resource = its_name) INTO quiet;
    END IF;
    UPDATE fenced_lease
      SET token = granted, holder = its_holder, end_us = now_us + its_ttl_ms * 1000,
          attempts = its_attempt, metadata = its_metadata, is_quiet = quiet
      WHERE resource = its_name;
  END IF;
END;

-- Claims a grant in the transaction that makes it, if nothing is in the way. It does not wait for
-- transactions of the store, which share-lock a mark. It claims no token that is ahead of the clock
-- by more than a day: a temporary table of the caller can hide the row that the token comes from.
CREATE PROCEDURE IF NOT EXISTS fenced_claim_now(
  IN its_resource VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin, IN its_token BIGINT,
  IN its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  IN its_issuer VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin, OUT its_claimed TINYINT
)
claim: BEGIN
  DECLARE service, found_issuer VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE found_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE found_token BIGINT;
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
        INSERT IGNORE INTO fenced_high_water_mark (resource, token, holder, issuer)
          VALUES (its_resource, its_token, its_holder, its_issuer);
        SET its_claimed = ROW_COUNT() = 1;
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

-- Gives back what an attempt has of a lease, or, without an attempt, all of the lease.
CREATE PROCEDURE IF NOT EXISTS fenced_give_back(
  IN resource VARBINARY(1000), IN token BIGINT,
  IN holder VARBINARY(1000),
  IN attempt VARBINARY(1000), IN tombstone BOOLEAN
)
BEGIN
  DECLARE its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE digest, tried, its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE its_attempts TEXT CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE its_outcome VARCHAR(16) CHARACTER SET ascii DEFAULT 'not_holder';
  DECLARE now_us, its_token, last_token, its_end_us BIGINT;
  DECLARE quiet, was_released TINYINT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL fenced_check_session();
  CALL fenced_check_attempt(
    resource, holder, COALESCE(attempt, '-'), its_name, digest, tried);
  IF token IS NULL OR tombstone IS NULL THEN
    CALL fenced_refuse('token and tombstone are not null');
  END IF;
  SET tried = IF(attempt IS NULL, '', tried);
  START TRANSACTION;
  CALL fenced_lock_lease(
    its_name, now_us, its_token, last_token, its_holder, its_end_us, its_attempts, quiet);
  IF its_token = token AND its_holder = digest
     AND (attempt IS NULL OR FIND_IN_SET(tried, its_attempts) > 0) THEN
    SET its_outcome = 'released';
    IF attempt IS NULL THEN
      CALL fenced_free(its_name);
    ELSE
      CALL fenced_without_attempt(its_name, its_attempts, tried);
    END IF;
    IF tombstone THEN
      CALL fenced_bury(its_name, digest, tried, token, now_us);
    END IF;
  ELSE
    SELECT EXISTS (SELECT 1 FROM fenced_tombstone t
                   WHERE t.resource = its_name AND t.holder = digest AND t.attempt = tried
                     AND t.token = token) INTO was_released;
    SET its_outcome = IF(was_released, 'released', its_outcome);
  END IF;
  COMMIT;
  SELECT its_outcome AS outcome;
END;

SET sql_mode = @fenced_sql_mode;
