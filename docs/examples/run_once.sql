-- A job that runs once for a slot, from psql:
--   psql --set ON_ERROR_STOP=1 --set slot=2026-11-27T02:00:00Z --file run_once.sql URL
-- Each statement outside BEGIN and COMMIT is a transaction of its own.

SELECT state = 'due' AS is_due, state FROM fenced.job_slot('interest', :'slot') \gset
\if :is_due
\else
  \echo :state
  \quit
\endif

-- The slots of a job share a lease, and its claim shuts every earlier runner out.
SELECT md5(random()::text) AS holder \gset
SELECT token, outcome = 'granted' AS is_granted, outcome
  FROM fenced.acquire('job:interest', :'holder', 'try-1', 30000) \gset
\if :is_granted
\else
  \echo :outcome
  \quit
\endif
SELECT fenced.claim('job:interest', :token, :'holder', 'postgres');

-- The work and its marker, both or neither. Only now is it certain that the slot is due.
BEGIN;
SELECT fenced.begin_fenced('job:interest', :token, :'holder', 'postgres');
SELECT state = 'due' AS is_due, state FROM fenced.run_job('interest', :'slot') \gset
\if :is_due
  UPDATE account SET balance = balance + 10 WHERE id = 1;
  \echo ran
\else
  \echo :state
\endif
COMMIT;

SELECT outcome FROM fenced.release('job:interest', :token, :'holder');
