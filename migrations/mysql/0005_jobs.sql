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
