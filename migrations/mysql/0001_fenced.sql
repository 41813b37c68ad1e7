-- The store rule for MySQL 8 and MariaDB 10.6 or newer: one high-water mark per protected resource.
-- Marks are checked by locking reads, which see the latest committed row at every isolation level.
--
-- The column "holder" has the SHA-256, as 64 hex digits, of the text that a holder presents.
-- Programs compute it before they send it. So a reader of the tables, of a backup, of the binary
-- log or of the general log sees which marks have one holder, and cannot act as that holder,
-- neither here nor at the lock service. A client that computes it in SQL, by SHA2('the text', 256),
-- shows the text to the readers of the general log and of the slow query log.
--
-- The tables do not enforce the rule: a user who may change them can write past it.

-- The one lock service whose tokens are taken. The first claim sets it.
CREATE TABLE IF NOT EXISTS fenced_lock_service (
  only_row TINYINT NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_row = 1),
  name     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
           CHECK (name <> '' AND name NOT REGEXP '[^-A-Za-z0-9_.:]')
) ENGINE = InnoDB;

-- The greatest token claimed per resource, and by whom. It never falls; rows are never deleted.
CREATE TABLE IF NOT EXISTS fenced_high_water_mark (
  resource   VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY
             CHECK (resource <> '' AND resource NOT REGEXP '[^!-~]'
                    AND LOCATE('"', resource) = 0 AND LOCATE(x'5C', resource) = 0),
  token      BIGINT NOT NULL CHECK (token BETWEEN 1 AND 999999999999999),
  holder     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  issuer     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
             CHECK (issuer <> '' AND issuer NOT REGEXP '[^-A-Za-z0-9_.:]'),
  claimed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
) ENGINE = InnoDB;

-- The transactions that are under way, and their grants: a note that each writes when it begins
-- and deletes before it commits. So nobody else ever sees one, but by a dirty read: a claim
-- that has waited in vain looks there for whom it has waited.
CREATE TABLE IF NOT EXISTS fenced_open_transaction (
  connection_id BIGINT UNSIGNED NOT NULL,
  resource      VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token         BIGINT NOT NULL,
  tx_name       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (connection_id, resource)
) ENGINE = InnoDB;

-- What administrators did to issuer and marks, and why.
CREATE TABLE IF NOT EXISTS fenced_admin_log (
  id          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  done_at     TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  done_by     VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  action      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
              CHECK (action IN ('seal', 'seal mark', 'reset mark')),
  resource    VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin,
  from_token  BIGINT,
  to_token    BIGINT,
  from_issuer VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  to_issuer   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  reason      VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
              CHECK (TRIM(reason) <> '')
) ENGINE = InnoDB;

-- Jobs that run once per slot. A job is the resource 'job:NAME', for all of its slots, and only who
-- has its fence may write here: the program sees to that.

-- The slots that are done, have saved progress, or have failed.
CREATE TABLE IF NOT EXISTS fenced_job_run (
  job        VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  slot       VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  done_token BIGINT,                       -- null: not done
  done_at    TIMESTAMP(3) NULL DEFAULT NULL,
  steps      BIGINT NOT NULL DEFAULT 0,    -- that are committed
  progress   LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,  -- what the last of them saved
  attempts   BIGINT NOT NULL DEFAULT 0,    -- that have failed
  last_error TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  retry_at   TIMESTAMP(3) NULL DEFAULT NULL,
  PRIMARY KEY (job, slot)
) ENGINE = InnoDB;

-- For each job the time below which its slots are forgotten: they count as done.
CREATE TABLE IF NOT EXISTS fenced_forgotten_job (
  job        VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  below_slot VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
) ENGINE = InnoDB;
