-- JOBS
--
-- Jobs that run once per slot: a slot is a time of a schedule, or any text. A job is the resource
-- 'job:NAME', for all of its slots. A worker holds the lease of the job, has claimed the token, and
-- works in transactions that fenced.begin_fenced has let in:
--
--   fenced.job_slot    where a slot stands: one read, at any time
--   fenced.run_job     the same, and if the slot is due, marks it as done. First thing in the
--                      transaction of the effect: both are committed, or neither
--   fenced.save_job    saves the progress of a slot, in the transaction of a step
--   fenced.fail_job    notes a failure, in a transaction of its own after the failed one
--   fenced.newest_job  the newest time for which the job was done, or which is forgotten
--   fenced.job_slots   what is known of the slots of all jobs, or of one
--   fenced.retry_job, fenced.forget_job, fenced.forget_jobs_below   for operators
--
-- The functions that write refuse a transaction without the fence of 'job:NAME' (FN010, FN011). So
-- an overtaken worker cannot mark, save or fail anything, whatever the language of its program.

create domain fenced.job_name as text collate "C"
  constraint job_has_1_to_252_visible_ascii_characters
    check (value is not null and value ~ '^[]-~!#-[]+$' and length(value) <= 252);
create domain fenced.slot_name as text collate "C"
  constraint slot_has_1_to_256_visible_ascii_characters
    check (value is not null and value ~ '^[]-~!#-[]+$' and length(value) <= 256);
create domain fenced.progress as text
  constraint progress_has_at_most_1_mib check (octet_length(value) <= 1048576)
  constraint progress_is_readable check (fenced.is_readable(value));
create domain fenced.job_error as text
  constraint error_has_at_most_10000_bytes check (octet_length(value) <= 10000)
  constraint error_is_readable check (fenced.is_readable(value));
create domain fenced.back_off_ms as bigint
  constraint back_off_is_0_to_100_years
    check (value is not null and value between 0 and 3155760000000);

create table fenced.job_run (
  job        fenced.job_name,
  slot       fenced.slot_name,
  done_token fenced.token,                    -- null: not done
  done_at    timestamptz,
  steps      bigint not null default 0        -- that are committed
             constraint steps_are_not_negative check (steps >= 0),
  progress   fenced.progress,                 -- what the last of them saved
  attempts   bigint not null default 0,       -- that have failed
  last_error fenced.job_error,
  retry_at   timestamptz,
  primary key (job, slot)
);
comment on table fenced.job_run is
  'The slots of jobs that are done, have saved progress, or have failed.';

create table fenced.forgotten_job (
  job        fenced.job_name primary key,
  below_slot fenced.slot_name not null
);
comment on table fenced.forgotten_job is
  'For each job the time below which its slots are forgotten: they count as done.';

-- A slot of a schedule: UTC, in one form, so that the order of texts is that of times.
create function fenced.is_time_slot(slot text) returns boolean
language sql immutable parallel safe as $$
  select slot operator(pg_catalog.~)
    '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$'
$$;

create function fenced.unix_ms(moment timestamptz) returns bigint
language sql immutable parallel safe as $$
  select (pg_catalog.date_part('epoch', moment) operator(pg_catalog.*) 1000)::pg_catalog.int8
$$;

-- "state" is 'due', 'done', 'forgotten' or 'backing off'; what is not known is 0 or ''.
create function fenced.job_slot(job text, slot text)
returns table (
  state text, token bigint, done_at_ms bigint, steps bigint, progress text,
  attempts bigint, last_error text, retry_in_ms bigint
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select case when r.done_token is not null then 'done'
              when fenced.is_time_slot($2) and $2 collate "C" < f.below_slot then 'forgotten'
              when r.retry_at > clock_timestamp() then 'backing off'
              else 'due' end,
         coalesce(r.done_token, 0)::bigint, coalesce(fenced.unix_ms(r.done_at), 0),
         coalesce(r.steps, 0), coalesce(r.progress, ''),
         coalesce(r.attempts, 0), coalesce(r.last_error, ''),
         greatest(fenced.unix_ms(r.retry_at) - fenced.unix_ms(clock_timestamp()), 0)
    from (select 1) as one
    left join fenced.job_run r on r.job = $1 and r.slot = $2
    left join fenced.forgotten_job f on f.job = $1
$$;

create function fenced.run_job(job text, slot text)
returns table (
  state text, token bigint, done_at_ms bigint, steps bigint, progress text,
  attempts bigint, last_error text, retry_in_ms bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  before record;
begin
  perform fenced_guards.check_row_write('job:' || $1, 'fenced.job_run'::regclass);
  -- One look for both. With two, a slot could become due in between: it would be marked, and the
  -- worker would not run it.
  select * into before from fenced.job_slot($1, $2);
  if before.state = 'due' then
    insert into fenced.job_run (job, slot, done_token, done_at)
      select $1, $2, m.token, clock_timestamp()
        from fenced.high_water_mark m where m.resource = 'job:' || $1
      on conflict (job, slot) do update
        set done_token = excluded.done_token, done_at = excluded.done_at, retry_at = null;
  end if;
  return query select before.state, before.token, before.done_at_ms, before.steps,
    before.progress, before.attempts, before.last_error, before.retry_in_ms;
end $$;

-- The steps that are committed with this transaction, and what they have come to.
create function fenced.save_job(job text, slot text, steps bigint, progress text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  perform fenced_guards.check_row_write('job:' || $1, 'fenced.job_run'::regclass);
  insert into fenced.job_run (job, slot, steps, progress) values ($1, $2, $3, $4)
    on conflict (job, slot) do update set steps = $3, progress = $4;
end $$;

-- It is due again after so many milliseconds.
create function fenced.fail_job(job text, slot text, error text, retry_in_ms bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  perform fenced_guards.check_row_write('job:' || $1, 'fenced.job_run'::regclass);
  insert into fenced.job_run as r (job, slot, attempts, last_error, retry_at)
    values ($1, $2, 1, $3, clock_timestamp() + $4::fenced.back_off_ms * interval '1 ms')
    on conflict (job, slot) do update
      set attempts = r.attempts + 1, last_error = $3, retry_at = excluded.retry_at
      where r.done_token is null;
end $$;

-- '': none.
create function fenced.newest_job(job text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(greatest(
    (select max(r.slot::text collate "C") from fenced.job_run r
       where r.job = $1 and r.done_token is not null and fenced.is_time_slot(r.slot::text)),
    (select f.below_slot::text from fenced.forgotten_job f where f.job = $1)), '')
$$;

-- From after a slot of a job on, ordered by both; all columns of fenced.job_slot after their names.
create function fenced.job_slots(after_job text, after_slot text, count bigint)
returns table (
  job text, slot text, state text, token bigint, done_at_ms bigint, steps bigint, progress text,
  attempts bigint, last_error text, retry_in_ms bigint
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select r.job::text, r.slot::text, s.*
    from (select * from fenced.job_run
            where (job, slot) > ($1 collate "C", $2 collate "C")
            order by job, slot limit $3) r,
         fenced.job_slot(r.job::text, r.slot::text) s
    order by r.job, r.slot
$$;

-- A slot that has failed is due at once.
create function fenced.retry_job(job text, slot text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  perform fenced_guards.check_row_write('job:' || $1, 'fenced.job_run'::regclass);
  update fenced.job_run set attempts = 0, retry_at = null
    where job = $1 and slot = $2 and done_token is null;
  return found;
end $$;

-- Forgets what is known of a slot: it can run again, from its beginning.
create function fenced.forget_job(job text, slot text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  perform fenced_guards.check_row_write('job:' || $1, 'fenced.job_run'::regclass);
  delete from fenced.job_run where job = $1 and slot = $2;
  return found;
end $$;

-- Forgets the times before this one, which count as done from then on, for good. It goes no further
-- than the newest time that is done, and not past one that is known and not done, unless all are
-- given up. Returns the time that it came to; '' if there is none.
create function fenced.forget_jobs_below(
  job text, below_slot text, give_up boolean default false
) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  now constant text := to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
  below text;
begin
  if fenced.is_time_slot($2) is not true then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'slots are forgotten below a time, such as 2026-11-27T02:00:00Z';
  end if;
  perform fenced_guards.check_row_write('job:' || $1, 'fenced.job_run'::regclass);
  select least($2 collate "C", now collate "C",
               min(slot::text collate "C") filter (where done_token is null and not $3),
               case when not $3 then coalesce(
                 max(slot::text collate "C") filter (where done_token is not null), '') end)
    into below from fenced.job_run where job = $1 and fenced.is_time_slot(slot::text);
  if below = '' then
    return coalesce((select f.below_slot::text from fenced.forgotten_job f where f.job = $1), '');
  end if;
  insert into fenced.forgotten_job as f (job, below_slot) values ($1, below)
    on conflict (job) do update
      set below_slot = greatest(f.below_slot, excluded.below_slot)
    returning below_slot into below;
  delete from fenced.job_run
    where job = $1 and slot < below and fenced.is_time_slot(slot::text);
  return below;
end $$;

revoke all on function fenced.is_time_slot, fenced.unix_ms, fenced.job_slot, fenced.run_job,
  fenced.save_job, fenced.fail_job, fenced.newest_job, fenced.job_slots, fenced.retry_job,
  fenced.forget_job, fenced.forget_jobs_below from public;
grant execute on function fenced.job_slot, fenced.run_job, fenced.save_job, fenced.fail_job,
  fenced.newest_job, fenced.job_slots, fenced.retry_job, fenced.forget_job,
  fenced.forget_jobs_below to public;
