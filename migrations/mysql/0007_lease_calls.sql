-- LEASES: WHAT CLIENTS CALL
--
--   fenced_acquire            asks for a lease, and asks again while it says 'waiting'
--   fenced_acquire_together   several leases at once, or none
--   fenced_renew              renews leases
--   fenced_release            ends a lease
--   fenced_release_hold       ends what one attempt has of a lease
--   fenced_cancel             ends one attempt to acquire, whatever became of it
--   fenced_look               tells waiters whether it is their turn
--   fenced_leases, fenced_force_release   for operators
--
-- Each answers with rows. A caller needs EXECUTE on the procedures that it calls, and no right on
-- a table: they run with the rights of the account that has migrated.

SET @fenced_sql_mode = @@sql_mode;
SET sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

-- Outcomes:
--   granted      the lease is yours: token, left_ms
--   held         another holder has it, for left_ms at most if it is not renewed
--   waiting      you are in the queue: call again with the same arguments when fenced_look says
--                that it is your turn, when left_ms are over, and at least every second. A waiter
--                that is silent for 3 s, or does not take the lease for 3 s when it is its turn, is
--                passed over
--   released     this acquisition or attempt has ended, or its lease ran out: begin a new one
--   full         as many wait as max_waiters allows, or 1000 attempts share the lease
--   late         not_after_us has passed: this is an old copy of the request, or your clock is
--                wrong
--   implausible  at_least is too high; token is the greatest that can be right
--   exhausted    there are no tokens left
--
-- A resource may have a prefix, as in 'jobs account:42': its lease has nothing to do with that of
-- 'account:42', and the mark that is claimed is that of 'account:42'.
--
-- ttl_ms is 10 to 86400000. A wait of 0 ms looks once and leaves the queue; null waits without
-- bound. client is 1 to 64 characters that no other program has, such as a UUID; it is the one to
-- look with. at_least is a token that the store asks for, or 0. The token is the greatest of: the
-- last one plus one, the clock in 10 us, at_least. metadata, max_waiters, not_after_us and
-- claim_for may be null.
--
-- claim_for is the name under which this database takes tokens as those of its lock service. With
-- it the grant is claimed in the same step, if nothing is in the way: claimed.
--
-- For a script that cannot read the answer, @fenced_outcome has the outcome, too, and @fenced_token
-- the token. Nothing here reads these variables.
CREATE PROCEDURE IF NOT EXISTS fenced_acquire(
  IN resource VARBINARY(1000),
  IN holder VARBINARY(1000),
  IN attempt VARBINARY(1000),
  IN ttl_ms BIGINT, IN wait_ms BIGINT,
  IN client VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN at_least BIGINT,
  IN metadata VARCHAR(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN max_waiters BIGINT, IN not_after_us BIGINT,
  IN claim_for VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_client VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE digest, tried VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_holder, first_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_attempts TEXT CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_outcome VARCHAR(16) CHARACTER SET ascii;
    DECLARE now_us, its_token, last_token, its_end_us, its_left_ms, most_plausible BIGINT;
    DECLARE quiet TINYINT;
    DECLARE is_claimed, has_ended TINYINT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    CALL fenced_check_attempt(resource, holder, attempt, its_name, digest, tried);
    SET its_client = client;
    IF COALESCE(ttl_ms NOT BETWEEN 10 AND 86400000 OR at_least NOT BETWEEN 0 AND 999999999999999
                OR CHAR_LENGTH(its_client) = 0, TRUE)
       OR wait_ms NOT BETWEEN 0 AND 3155760000000 OR max_waiters < 0
       OR LENGTH(claim_for) > 64 THEN
      CALL fenced_refuse('an argument besides resource, holder and attempt is out of bounds');
    END IF;
    CALL fenced_check_metadata(metadata);

    START TRANSACTION;
    CALL fenced_lock_lease(
      its_name, now_us, its_token, last_token, its_holder, its_end_us, its_attempts, quiet);
    IF last_token IS NULL THEN
      ROLLBACK;
      CALL fenced_make_lease(its_name);
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
      START TRANSACTION;
      CALL fenced_lock_lease(
        its_name, now_us, its_token, last_token, its_holder, its_end_us, its_attempts, quiet);
    END IF;

    -- A floor may be ahead of the clock by a day, because clocks differ, but not by more. A higher
    -- one must be a mistake, and would use the tokens up.
    SET most_plausible = LEAST(now_us DIV 10 + 8640000000, 999999999999999);
    IF not_after_us < now_us THEN
      SET its_outcome = 'late', its_token = NULL;
    ELSEIF at_least > most_plausible THEN
      SET its_outcome = 'implausible', its_token = most_plausible;
    ELSE
      IF NOT quiet THEN
        CALL fenced_has_ended(its_name, digest, tried, has_ended);
        CALL fenced_first_waiter(its_name, now_us, first_holder);
      END IF;
      IF has_ended THEN
        SET its_outcome = 'released', its_token = NULL;
      ELSEIF its_holder = digest THEN
        -- Sent again, or another attempt of the same acquisition.
        SET its_outcome = 'granted', its_left_ms = (its_end_us - now_us) DIV 1000;
        CALL fenced_join(its_name, its_attempts, tried, its_outcome);
        SET its_token = IF(its_outcome = 'full', NULL, its_token);
      ELSEIF its_holder = '' AND COALESCE(first_holder, digest) = digest THEN
        SET its_outcome = 'granted', its_left_ms = ttl_ms;
      ELSE
        -- A resource that is free here is kept for the first in the queue.
        SET its_token = NULL, its_left_ms = GREATEST(1, (its_end_us - now_us) DIV 1000);
        IF wait_ms = 0 THEN
          SET its_outcome = 'held';
        ELSE
          CALL fenced_enqueue(
            its_name, digest, tried, its_client, wait_ms, max_waiters, now_us, its_outcome);
        END IF;
      END IF;
      IF NOT quiet AND its_outcome IN ('granted', 'released', 'held') THEN
        CALL fenced_leave(its_name, digest, tried);
      END IF;
      IF its_outcome = 'granted' AND its_holder = '' THEN
        CALL fenced_grant(its_name, last_token, digest, tried, ttl_ms, at_least, metadata, quiet,
                          now_us, its_token);
        IF its_token IS NULL THEN
          SET its_outcome = 'exhausted';
        END IF;
      END IF;
      IF its_outcome = 'granted' AND claim_for IS NOT NULL THEN
        CALL fenced_claim_now(SUBSTR(its_name, LOCATE(' ', its_name) + 1), its_token, digest,
                              claim_for, is_claimed);
      END IF;
    END IF;
    COMMIT;
    SET @fenced_outcome = its_outcome, @fenced_token = its_token;
    SELECT its_outcome AS outcome, its_token AS token, its_left_ms AS left_ms,
           is_claimed AS claimed;
  END;
END;

-- Several leases at once, 1 to 64, all or none, past those who wait. The list is a JSON array of
-- objects with resource, ttl_ms, and perhaps at_least and metadata; resources must differ. The
-- outcomes are those of fenced_acquire without waiting; tokens and left_ms have one number for each
-- lease, in the order of the list, with commas.
CREATE PROCEDURE IF NOT EXISTS fenced_acquire_together(
  IN list MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN holder VARBINARY(1000),
  IN attempt VARBINARY(1000),
  IN not_after_us BIGINT
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE digest, tried, its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_attempts TEXT CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_outcome VARCHAR(16) CHARACTER SET ascii DEFAULT 'granted';
    DECLARE tokens, lefts VARCHAR(2000) CHARACTER SET ascii;
    DECLARE note VARCHAR(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE now_us, its_token, last_token, its_end_us, its_ttl_ms, its_floor, held_ms, floor BIGINT;
    DECLARE quiet, is_over, is_there, has_ended TINYINT DEFAULT 0;
    DECLARE by_name CURSOR FOR
      SELECT a.resource FROM JSON_TABLE(list, '$[*]' COLUMNS (
        resource VARCHAR(1000) PATH '$.resource' ERROR ON EMPTY ERROR ON ERROR)) a
      ORDER BY CONVERT(a.resource USING ascii) COLLATE ascii_bin;
    DECLARE by_place CURSOR FOR
      SELECT a.resource, a.ttl_ms, COALESCE(a.at_least, 0), a.metadata
      FROM JSON_TABLE(list, '$[*]' COLUMNS (
        place FOR ORDINALITY,
        resource VARCHAR(1000) PATH '$.resource' ERROR ON EMPTY ERROR ON ERROR,
        ttl_ms BIGINT PATH '$.ttl_ms' ERROR ON EMPTY ERROR ON ERROR,
        at_least BIGINT PATH '$.at_least' NULL ON EMPTY ERROR ON ERROR,
        metadata VARCHAR(2000) PATH '$.metadata' NULL ON EMPTY ERROR ON ERROR)) a
      ORDER BY a.place;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    CALL fenced_check_attempt('-', holder, attempt, its_name, digest, tried);
    IF COALESCE(JSON_LENGTH(list) NOT BETWEEN 1 AND 64, TRUE) THEN
      CALL fenced_refuse('a list of leases has 1 to 64 elements');
    END IF;

    -- Rows are made before any is locked.
    OPEN by_place;
    l: LOOP
      FETCH by_place INTO its_name, its_ttl_ms, its_floor, note;
      IF is_over THEN LEAVE l; END IF;
      IF COALESCE(RIGHT(its_name, 1) = ' ' OR its_ttl_ms NOT BETWEEN 10 AND 86400000
                  OR its_floor NOT BETWEEN 0 AND 999999999999999, TRUE) THEN
        CALL fenced_refuse('a resource, ttl_ms or at_least is out of bounds');
      END IF;
      CALL fenced_check_metadata(note);
      SET floor = GREATEST(COALESCE(floor, 0), its_floor);
      SELECT EXISTS (SELECT 1 FROM fenced_lease f WHERE f.resource = its_name) INTO is_there;
      IF NOT is_there THEN
        COMMIT;
        CALL fenced_make_lease(its_name);
      END IF;
    END LOOP;
    CLOSE by_place;
    COMMIT;

    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    SET is_over = 0;
    OPEN by_name;
    l: LOOP
      FETCH by_name INTO its_name;
      IF is_over THEN LEAVE l; END IF;
      CALL fenced_lock_lease(
        its_name, now_us, its_token, last_token, its_holder, its_end_us, its_attempts, quiet);
      IF last_token IS NULL THEN
        SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213,
          MESSAGE_TEXT = 'the row of a lease was forgotten a moment ago: send the call again';
      END IF;
      IF NOT quiet THEN
        CALL fenced_has_ended(its_name, digest, tried, has_ended);
        SET its_outcome = IF(has_ended, 'released', its_outcome);
      END IF;
      IF its_holder NOT IN ('', digest) THEN
        SET held_ms = GREATEST(COALESCE(held_ms, 1), (its_end_us - now_us) DIV 1000);
      END IF;
      IF last_token >= 999999999999999 AND its_outcome = 'granted' THEN
        SET its_outcome = 'exhausted';
      END IF;
    END LOOP;
    CLOSE by_name;
    -- All rows are locked: none of these leases can change any more.
    SET now_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6));
    IF not_after_us < now_us THEN
      SET its_outcome = 'late';
    ELSEIF its_outcome <> 'released' AND held_ms IS NOT NULL THEN
      SET its_outcome = 'held', lefts = held_ms;
    ELSEIF its_outcome <> 'released'
       AND floor > LEAST(now_us DIV 10 + 8640000000, 999999999999999) THEN
      SET its_outcome = 'implausible', tokens = LEAST(now_us DIV 10 + 8640000000, 999999999999999);
    ELSEIF its_outcome = 'granted' THEN
      SET is_over = 0;
      OPEN by_place;
      l: LOOP
        FETCH by_place INTO its_name, its_ttl_ms, its_floor, note;
        IF is_over THEN LEAVE l; END IF;
        CALL fenced_lock_lease(
          its_name, now_us, its_token, last_token, its_holder, its_end_us, its_attempts, quiet);
        IF its_holder = digest THEN
          SET its_ttl_ms = (its_end_us - now_us) DIV 1000;
          CALL fenced_join(its_name, its_attempts, tried, its_outcome);
        ELSE
          CALL fenced_grant(its_name, last_token, digest, tried, its_ttl_ms, its_floor, note, quiet,
                            now_us, its_token);
        END IF;
        SET tokens = CONCAT_WS(',', tokens, its_token), lefts = CONCAT_WS(',', lefts, its_ttl_ms);
      END LOOP;
      CLOSE by_place;
    END IF;
    COMMIT;
    SELECT its_outcome AS outcome, tokens AS tokens, lefts AS left_ms;
  END;
END;

-- Renews leases, 1 to 1000, each to its full ttl from now and never to less than it has. The list
-- is a JSON array of objects with resource, token, holder and ttl_ms. The answer has one letter for
-- each lease, in the order of the list:
--   r  renewed
--   n  no lease of this holder with this token lives; nothing changed
--   b  another call is deciding about the resource: ask again
-- Locked rows are skipped, so that one commit that hangs holds up no other lease.
CREATE PROCEDURE IF NOT EXISTS fenced_renew(
  IN list MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE presented VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE digest, its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE letters VARCHAR(1000) CHARACTER SET ascii DEFAULT '';
    DECLARE now_us, asked_token, its_token, its_end_us, its_ttl_ms BIGINT;
    DECLARE is_over, is_missing, is_busy TINYINT DEFAULT 0;
    DECLARE asked CURSOR FOR
      SELECT a.resource, a.token, a.holder, a.ttl_ms FROM JSON_TABLE(list, '$[*]' COLUMNS (
        place FOR ORDINALITY,
        resource VARCHAR(1000) PATH '$.resource' ERROR ON EMPTY ERROR ON ERROR,
        token BIGINT PATH '$.token' ERROR ON EMPTY ERROR ON ERROR,
        holder VARCHAR(1000) PATH '$.holder' ERROR ON EMPTY ERROR ON ERROR,
        ttl_ms BIGINT PATH '$.ttl_ms' ERROR ON EMPTY ERROR ON ERROR)) a
      ORDER BY a.place;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    IF COALESCE(JSON_LENGTH(list) NOT BETWEEN 1 AND 1000, TRUE) THEN
      CALL fenced_refuse('a list of leases has 1 to 1000 elements');
    END IF;
    START TRANSACTION;
    OPEN asked;
    l: LOOP
      FETCH asked INTO its_name, asked_token, presented, its_ttl_ms;
      IF is_over THEN LEAVE l; END IF;
      IF COALESCE(its_ttl_ms NOT BETWEEN 10 AND 86400000, TRUE)
         OR CONCAT(its_name, asked_token, presented) IS NULL THEN
        CALL fenced_refuse('ttl_ms is 10 to 86400000, and nothing is null');
      END IF;
      SET digest = SHA2(presented, 256), its_token = NULL;
      SELECT f.token, f.holder, f.end_us INTO its_token, its_holder, its_end_us
        FROM fenced_lease f WHERE f.resource = its_name FOR UPDATE SKIP LOCKED;
      SET now_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)), is_missing = is_over,
          is_over = 0;
      IF is_missing THEN
        -- It is locked, or was never held.
        SELECT EXISTS (
          SELECT 1 FROM fenced_lease f
          WHERE f.resource = its_name AND f.token = asked_token AND f.holder = digest
            AND f.end_us > now_us) INTO is_busy;
        SET letters = CONCAT(letters, IF(is_busy, 'b', 'n'));
      ELSEIF its_token = asked_token AND its_holder = digest AND its_end_us > now_us THEN
        UPDATE fenced_lease f SET f.end_us = GREATEST(f.end_us, now_us + its_ttl_ms * 1000)
          WHERE f.resource = its_name;
        SET letters = CONCAT(letters, 'r');
      ELSE
        SET letters = CONCAT(letters, 'n');
      END IF;
    END LOOP;
    CLOSE asked;
    COMMIT;
    SELECT letters AS outcomes;
  END;
END;

-- Outcomes: released (also if it is sent again), not_holder.
--
-- The tombstone may be left out if no copy of a request of this acquisition can still arrive.
CREATE PROCEDURE IF NOT EXISTS fenced_release(
  IN resource VARBINARY(1000), IN token BIGINT,
  IN holder VARBINARY(1000), IN tombstone BOOLEAN
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  CALL fenced_give_back(resource, token, holder, NULL, tombstone);
END;

-- Gives back what one attempt has of a lease; the lease ends with its last attempt. The holder may
-- acquire again. Outcomes: released (also if it is sent again), not_holder.
CREATE PROCEDURE IF NOT EXISTS fenced_release_hold(
  IN resource VARBINARY(1000), IN token BIGINT,
  IN holder VARBINARY(1000),
  IN attempt VARBINARY(1000)
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  IF attempt IS NULL THEN
    CALL fenced_refuse('an attempt has 1 to 256 bytes');
  END IF;
  CALL fenced_give_back(resource, token, holder, attempt, TRUE);
END;

-- Ends an attempt: it holds nothing, waits for nothing, and never will. Other attempts of the same
-- acquisition are not touched.
CREATE PROCEDURE IF NOT EXISTS fenced_cancel(
  IN resource VARBINARY(1000),
  IN holder VARBINARY(1000),
  IN attempt VARBINARY(1000)
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE digest, tried, its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_attempts TEXT CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE now_us, its_token, last_token, its_end_us BIGINT;
    DECLARE quiet TINYINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    CALL fenced_check_attempt(resource, holder, attempt, its_name, digest, tried);
    START TRANSACTION;
    CALL fenced_lock_lease(
      its_name, now_us, its_token, last_token, its_holder, its_end_us, its_attempts, quiet);
    IF last_token IS NULL THEN
      -- The tombstone needs a row, because that says that there is one.
      ROLLBACK;
      CALL fenced_make_lease(its_name);
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
      START TRANSACTION;
      CALL fenced_lock_lease(
        its_name, now_us, its_token, last_token, its_holder, its_end_us, its_attempts, quiet);
    END IF;
    CALL fenced_bury(its_name, digest, tried, 0, now_us);
    CALL fenced_leave(its_name, digest, tried);
    IF its_holder = digest AND FIND_IN_SET(tried, its_attempts) > 0 THEN
      CALL fenced_without_attempt(its_name, its_attempts, tried);
    END IF;
    COMMIT;
    SELECT 'cancelled' AS outcome;
  END;
END;

-- Ends the lease with this token, whatever its holder. To its holder this looks as if it had run
-- out. Outcomes: ended, with a token that no holder gets and that lies between that lease and the
-- next (the same one if it is sent again); not_held; exhausted.
CREATE PROCEDURE IF NOT EXISTS fenced_force_release(
  IN resource VARBINARY(1000), IN token BIGINT
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE digest, tried, its_holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_attempts TEXT CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_outcome VARCHAR(16) CHARACTER SET ascii DEFAULT 'ended';
    DECLARE now_us, its_token, last_token, its_end_us, its_revocation BIGINT;
    DECLARE quiet TINYINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    CALL fenced_check_attempt(resource, '-', '-', its_name, digest, tried);
    START TRANSACTION;
    CALL fenced_lock_lease(
      its_name, now_us, its_token, last_token, its_holder, its_end_us, its_attempts, quiet);
    SELECT f.revocation INTO its_revocation FROM fenced_forced_release f
      WHERE f.resource = its_name AND f.token = token;
    IF its_revocation IS NOT NULL THEN
      SET its_outcome = 'ended';
    ELSEIF COALESCE(its_holder = '' OR its_token <> token, TRUE) THEN
      SET its_outcome = 'not_held';
    ELSEIF last_token >= 999999999999999 THEN
      SET its_outcome = 'exhausted';
    ELSE
      SET its_revocation = last_token + 1;
      CALL fenced_free(its_name);
      UPDATE fenced_lease f SET f.revocation = its_revocation WHERE f.resource = its_name;
      CALL fenced_bury(its_name, its_holder, '', 0, now_us);
      INSERT INTO fenced_forced_release (resource, token, revocation, minute)
        VALUES (its_name, token, its_revocation, now_us DIV 60000000);
    END IF;
    COMMIT;
    SELECT its_outcome AS outcome, its_revocation AS revocation;
  END;
END;

-- The waiters of this client, by the fingerprints of their holders and attempts: whether each of
-- them should ask again now, whether it is the first, and when the present lease ends. A waiter
-- that is not listed has to ask again, too.
--
-- alive has the fingerprints of attempts, with commas; null means all. For these it counts as a
-- sign of life; a late copy of a request whose program has gone dies, although others look as its
-- client. It does not count for a waiter whose turn has come: that one has 3 s to ask again,
-- because it keeps the others from a free resource.
CREATE PROCEDURE IF NOT EXISTS fenced_look(
  IN client VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  IN alive MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE its_name VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_client VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE its_ticket, free_ticket, now_us BIGINT;
    DECLARE is_over TINYINT DEFAULT 0;
    DECLARE waiting CURSOR FOR
      SELECT w.resource, w.ticket FROM fenced_waiter w
        JOIN fenced_lease f ON f.resource = w.resource
      WHERE w.client = its_client
        AND (alive IS NULL OR FIND_IN_SET(LEFT(w.attempt, 16), alive) > 0)
        AND NOT ((f.holder = '' OR f.end_us <= now_us) AND NOT EXISTS (
          SELECT 1 FROM fenced_waiter o
          WHERE o.resource = w.resource AND o.ticket < w.ticket AND o.holder <> w.holder
            AND o.wait_until_us > now_us AND ABS(now_us - o.seen_us) <= 3000000));
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    SET its_client = client, now_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6));
    START TRANSACTION;
    IF alive IS NULL OR alive <> '' THEN
      OPEN waiting;
      l: LOOP
        FETCH waiting INTO its_name, its_ticket;
        IF is_over THEN LEAVE l; END IF;
        SET free_ticket = NULL;
        SELECT w.ticket INTO free_ticket FROM fenced_waiter w
          WHERE w.resource = its_name AND w.ticket = its_ticket FOR UPDATE SKIP LOCKED;
        SET is_over = 0;
        UPDATE fenced_waiter w SET w.seen_us = now_us
          WHERE w.resource = its_name AND w.ticket = free_ticket;
      END LOOP;
      CLOSE waiting;
      COMMIT;
      SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
      START TRANSACTION;
    END IF;
    SELECT q.resource, q.holder, q.attempt, q.mine OR q.free AND q.first AS turn, q.first,
           q.left_ms
      FROM (
        SELECT w.resource, LEFT(w.holder, 16) AS holder, LEFT(w.attempt, 16) AS attempt,
               f.holder = w.holder AS mine, f.holder = '' OR f.end_us <= now_us AS free,
               NOT EXISTS (
                 SELECT 1 FROM fenced_waiter o
                 WHERE o.resource = w.resource AND o.ticket < w.ticket AND o.holder <> w.holder
                   AND o.wait_until_us > now_us AND ABS(now_us - o.seen_us) <= 3000000) AS first,
               GREATEST(0, (f.end_us - now_us) DIV 1000) AS left_ms
          FROM fenced_waiter w JOIN fenced_lease f ON f.resource = w.resource
          WHERE w.client = its_client) q;
    COMMIT;
  END;
END;

-- Everything that is held or waited for, or one resource of it. A holder is shown by its
-- fingerprint.
CREATE PROCEDURE IF NOT EXISTS fenced_leases(
  IN only_resource VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE low, high VARCHAR(321) CHARACTER SET ascii COLLATE ascii_bin;
    DECLARE now_us BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    SET low = COALESCE(only_resource, ''), high = COALESCE(only_resource, REPEAT('~', 321)),
        now_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6));
    SELECT q.resource, IF(q.held, q.token, NULL) AS token,
           IF(q.held, LEFT(q.holder, 16), NULL) AS holder,
           IF(q.held, (q.end_us - now_us) DIV 1000, NULL) AS left_ms,
           IF(q.held, q.metadata, NULL) AS metadata, q.waiters
      FROM (
        SELECT f.*, f.holder <> '' AND f.end_us > now_us AS held, (
            SELECT COUNT(DISTINCT w.holder) FROM fenced_waiter w
            WHERE w.resource = f.resource AND w.wait_until_us > now_us
              AND ABS(now_us - w.seen_us) <= 3000000) AS waiters
          FROM fenced_lease f WHERE f.resource BETWEEN low AND high) q
      WHERE q.held OR q.waiters > 0;
    COMMIT;
  END;
END;

-- Forgets tombstones that have served. Each client of Palisade calls this every minute; call it
-- from time to time where there is none.
CREATE PROCEDURE IF NOT EXISTS fenced_forget_tombstones()
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  BEGIN
    DECLARE this_minute, forgotten BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    CALL fenced_check_session();
    SET this_minute = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) DIV 60000000;
    START TRANSACTION;
    DELETE FROM fenced_tombstone WHERE minute < this_minute - 1;
    SET forgotten = ROW_COUNT();
    DELETE FROM fenced_forced_release WHERE minute < this_minute - 1;
    COMMIT;
    SELECT forgotten;
  END;
END;

-- The version of this interface, for clients that were written for another one, and the clock.
CREATE PROCEDURE IF NOT EXISTS fenced_lock_service()
BEGIN
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  CALL fenced_check_session();
  SELECT 1 AS version, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) AS unix_us;
  COMMIT;
END;

SET sql_mode = @fenced_sql_mode;
