-- Jobs that run once per slot. A job is the resource 'job:NAME', for all of its slots, and only who
-- has its fence may write here: the program sees to that.

-- The slots that are done, have saved progress, or have failed.
CREATE TABLE fenced_job_run (
  job        TEXT NOT NULL,
  slot       TEXT NOT NULL,
  done_token INTEGER,                      -- null: not done
  done_at    TEXT,
  steps      INTEGER NOT NULL DEFAULT 0,   -- that are committed
  progress   TEXT,                         -- what the last of them saved
  attempts   INTEGER NOT NULL DEFAULT 0,   -- that have failed
  last_error TEXT,
  retry_at   TEXT,
  PRIMARY KEY (job, slot)
) WITHOUT ROWID;

-- For each job the time below which its slots are forgotten: they count as done.
CREATE TABLE fenced_forgotten_job (
  job        TEXT PRIMARY KEY NOT NULL,
  below_slot TEXT NOT NULL
) WITHOUT ROWID;
