-- LEASES
--
-- This database as lock service: leases with fencing tokens, and a fair queue. Here are the tables
-- and what other functions call; the next migration has what clients call.
--
-- A lease is named after its resource, or "PREFIX RESOURCE": leases of different prefixes do not
-- see each other. Marks have no prefix. Below, a resource is the name of a lease, with its prefix.
--
-- Each call of a client is a transaction of its own, at READ COMMITTED: so no lock is held over a
-- round trip, and nothing here depends on the session, which a pooler may change with each
-- transaction. The only clock is that of the database. A normal answer, such as that another holder
-- has the lease, is an outcome and not an exception.
--
-- A holder is a text that one acquisition alone knows, an attempt a text for each try of it. A
-- request that is sent again with both finds itself: it gets the same lease, and never a second
-- one. The tables keep the digest of a holder; inner functions get it as it is kept. Notices and
-- lists show fingerprints, the first 16 hex digits of the digest.
--
-- Locks are taken in this order: the mutex of the resource, always first; then its row; those of a
-- claim last, and only if they are free. A statement that updated a free row without the mutex
-- would keep that row locked when it has lost the race, and then wait for the mutex: a deadlock.
-- Renewals take no mutex, and skip locked rows.
--
-- Nearly all cycles find a free lease without a queue, so fenced.acquire and fenced.release have a
-- short way, which reads and writes one row. The row says in is_quiet whether there may be waiters
-- or tombstones. Each function that makes one says so there, under the mutex. Only a grant that has
-- looked sets it again.
--
-- fenced.acquire and fenced.release have no search_path of their own, which costs time, and neither
-- have the functions that they call in each cycle: all names in these are qualified. The rest of
-- them begins with a function that has one. A function that only functions with a search_path call
-- runs with that of its caller. Postgres can inline such a function if it is in SQL.
--
-- A grant and a renewal are flushed, because a power cut that takes a lease back would let two
-- clients hold it. A release and the queue need not be: a lease whose release is lost ends by its
-- ttl, and the waiters join the queue again.

create domain fenced.lease_name as text collate "C"
  constraint prefix_has_1_to_64_letters_digits_or_marks
    check (value ~ '^([A-Za-z0-9._:-]+ |[^ ]*$)' and strpos(value, ' ') <= 65)
  constraint resource_has_1_to_256_visible_ascii_characters
    check (value is not null and value ~ '^([^ ]* )?[]-~!#-[]+$'
           and length(value) <= 256 + strpos(value, ' '));
create domain fenced.attempt as text
  constraint attempt_has_1_to_256_bytes
    check (value is not null and octet_length(value) between 1 and 256);
create domain fenced.ttl_ms as bigint
  constraint ttl_is_10_ms_to_24_hours check (value is not null and value between 10 and 86400000);
create domain fenced.wait_ms as bigint
  constraint wait_is_0_to_100_years check (value between 0 and 3155760000000); -- null: no bound
create domain fenced.channel as text
  constraint channel_has_at_most_63_visible_ascii_characters
    check (value is not null and octet_length(value) <= 63 -- as pg_notify asks; '': none
           and value ~ '^[!-~]*$');
create domain fenced.max_waiters as integer
  constraint max_waiters_is_not_negative check (value >= 0); -- null: no bound
create domain fenced.floor as bigint
  constraint floor_is_0_to_999999999999999
    check (value is not null and value between 0 and 999999999999999);
-- A note of the holder, for people.
create domain fenced.metadata as text
  constraint metadata_has_at_most_1024_bytes check (octet_length(value) <= 1024)
  constraint metadata_is_readable check (fenced.is_readable(value))
  constraint metadata_has_no_control_characters check (value !~ '[\u0001-\u001f\u007f]');

create table fenced.lease (
  resource   fenced.lease_name primary key,
  token      bigint not null,                 -- of this lease, or of the last one
  revocation bigint not null default 0,       -- the token of the last release by force
  holder     text not null default '',        -- as it is kept; '': free
  expires_at timestamptz not null default '-infinity',
  attempts   text[] not null default '{}',    -- that share this lease
  metadata   text,                            -- as fenced.metadata
  is_quiet   boolean not null                 -- it has no waiter and no tombstone
) with (fillfactor = 50); -- nothing that changes is indexed: updates stay on their page
comment on table fenced.lease is
  'One row per resource that was ever locked, with its present lease. Tokens never fall.';

create unlogged table fenced.waiter (
  resource   text collate "C" not null,
  ticket     bigint generated always as identity,
  holder     text not null,                   -- as it is kept
  attempt    text not null,
  channel    text not null,                   -- NOTIFY tells this one that its turn has come
  wait_until timestamptz not null,
  seen_at    timestamptz not null,
  primary key (resource, ticket)
);
create index waiter_by_channel on fenced.waiter (channel);
comment on table fenced.waiter is
  'Those who wait, in the order of their tickets. Empty after a crash: they ask again.';

create table fenced.tombstone (
  resource text collate "C" not null,
  holder   text not null,                     -- as it is kept
  attempt  text not null default '',          -- '': the whole acquisition
  token    bigint not null default 0,         -- of the lease that was released; 0: it was lost
  minute   integer not null,                  -- it is forgotten two minutes later
  primary key (resource, holder, attempt)
);
create index tombstone_by_minute on fenced.tombstone using brin (minute); -- costs an insert nothing
comment on table fenced.tombstone is
  'Acquisitions that ended a minute or two ago: late copies of their requests get nothing.';

create table fenced.forced_release (
  resource   text collate "C" not null,
  token      bigint not null,                 -- of the lease that was ended
  revocation bigint not null,
  minute     integer not null,                -- it is forgotten two minutes later
  primary key (resource, token)
);
comment on table fenced.forced_release is
  'Leases that an operator ended a minute or two ago: the same call again has the same answer.';

-- The clock in units of 10 us: 15 digits until the year 2286.
create function fenced.token_of(clock timestamptz) returns bigint
language sql stable parallel safe as $$
  select (pg_catalog.date_part('epoch', clock) operator(pg_catalog.*) 100000)::pg_catalog.int8
$$;

-- The greatest token of a resource that was ever taken.
create function fenced.last_token(lease fenced.lease) returns bigint
language sql immutable parallel safe as $$ select greatest(lease.token, lease.revocation) $$;

create function fenced.this_minute() returns integer
language sql volatile
as $$ select (extract(epoch from clock_timestamp()) / 60)::integer $$;

-- The resource of a lease: what follows its prefix.
create function fenced.resource_of(lease text) returns text
language sql immutable parallel safe as $$
  select pg_catalog.substr($1, pg_catalog.strpos($1, ' ') operator(pg_catalog.+) 1)
$$;

-- The part of a kept digest that others may see.
create function fenced.fingerprint(digest text) returns text
language sql immutable parallel safe as $$ select pg_catalog.left(digest, 16) $$;

-- Milliseconds until then, rounded down and never below 0.
create function fenced.left_ms(until timestamptz) returns bigint
language sql volatile
as $$
  select case
    when until > clock_timestamp()
      then greatest(0, floor(extract(epoch from until - clock_timestamp()) * 1000))::bigint
    else 0 end
$$;

-- Takes the mutex of a resource in the lock service, until the end of the transaction, if it is
-- free and no other transaction waits for it.
create function fenced.try_lock_lease(resource text) returns boolean
language sql volatile as $$
  select pg_catalog.current_setting('transaction_isolation')
      operator(pg_catalog.=) 'read committed'
    and pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(resource, 815))
$$;

-- The same, but waits. Only a commit that hangs holds a mutex for longer than a moment. Sessions
-- whose clients have gone would pile up behind that commit.
create function fenced.lock_lease(resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using
      errcode = 'invalid_transaction_state',
      message = 'leases need transactions at READ COMMITTED',
      hint = 'An older snapshot would not show what was decided while this call waited.';
  end if;
  perform fenced.limit_lock_timeout(2000);
  perform pg_advisory_xact_lock(hashtextextended(lock_lease.resource, 815));
end $$;

-- A commit is flushed to disk, and to synchronous standbys, whatever the session says.
create function fenced.flush_commit() returns void
language plpgsql as $$
begin
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $$;

-- Whether this acquisition, or this attempt of it, has ended. (A function in SQL that has a
-- subquery is planned anew by each call; one in plpgsql is not.)
create function fenced.has_ended(resource text, holder text, attempt text) returns boolean
language plpgsql as $$
begin
  return exists (
    select from fenced.tombstone t
    where t.resource = $1 and t.holder = $2 and t.attempt in ('', $3));
end $$;

-- Whether the lease with this token was released by its holder, or the hold of this attempt.
create function fenced.was_released(resource text, token bigint, holder text, attempt text)
returns boolean
language plpgsql as $$
begin
  return exists (
    select from fenced.tombstone t
    where t.resource = $1 and t.token = $2 and t.holder = $3 and t.attempt = $4);
end $$;

create function fenced.bury(resource text, holder text, attempt text, token bigint) returns void
language plpgsql as $$
begin
  insert into fenced.tombstone (resource, holder, attempt, token, minute)
    values ($1, $2, $3, $4, fenced.this_minute())
    on conflict on constraint tombstone_pkey do update set minute = excluded.minute;
  update fenced.lease l set is_quiet = false where l.resource = $1 and l.is_quiet;
end $$;

-- The row of a resource, locked against renewals, after a lease that ran out was ended; null if it
-- was never held. Under the mutex.
create function fenced.lease_now(resource text) returns fenced.lease
language plpgsql as $$
declare
  lease fenced.lease;
begin
  select * into lease from fenced.lease l where l.resource = $1 for update;
  if lease.holder <> '' and lease.expires_at <= clock_timestamp() then
    perform fenced.bury($1, lease.holder, ''::text, 0::bigint);
    update fenced.lease l
      set holder = '', expires_at = '-infinity', attempts = '{}', metadata = null
      where l.resource = $1 returning * into lease;
  end if;
  return lease;
end $$;

-- Whether a waiter is alive. A sign of life far in the future was given before the clock was set
-- back. It does not count, because a live waiter gives another one within a second.
create function fenced.is_alive(wait_until timestamptz, seen_at timestamptz) returns boolean
language sql volatile as $$
  select wait_until > clock_timestamp()
    and clock_timestamp() - seen_at between interval '-3 s' and interval '3 s'
$$;

-- The first waiter in the queue that is alive: it is its turn. Those before it are dropped. Under
-- the mutex.
create function fenced.first_waiter(resource text) returns fenced.waiter
language plpgsql as $$
declare
  waiter fenced.waiter;
begin
  loop
    select * into waiter from fenced.waiter w where w.resource = $1 order by w.ticket limit 1;
    exit when not found or fenced.is_alive(waiter.wait_until, waiter.seen_at);
    delete from fenced.waiter w where w.resource = $1 and w.ticket = waiter.ticket;
  end loop;
  return waiter;
end $$;

-- Notifies the first in the queue that the resource is free. Under the mutex, in a transaction
-- whose commit is not flushed: NOTIFY holds a lock of the whole server until the commit is over.
create function fenced.wake(resource text) returns void
language plpgsql as $$
declare
  waiter fenced.waiter := fenced.first_waiter($1);
begin
  if waiter.channel <> '' then
    perform pg_notify(waiter.channel,
      concat(fenced.resource_of($1), ' ', fenced.fingerprint(waiter.holder)));
  end if;
end $$;

-- Gives a free resource, whose row is locked if there is one, to this attempt. Null: there are no
-- tokens left.
create function fenced.grant_lease(
  resource text, free fenced.lease, holder text, attempt text, ttl_ms bigint, at_least bigint,
  metadata text
) returns bigint
language plpgsql as $$
declare
  granted constant bigint := greatest(
    fenced.last_token(free) + 1, fenced.token_of(clock_timestamp()), at_least);
begin
  if granted > 999999999999999 then
    return null;
  end if;
  insert into fenced.lease
      (resource, token, holder, expires_at, attempts, metadata, is_quiet)
    values ($1, granted, $3, clock_timestamp() + $5 * interval '1 ms', array[$4], $7,
            not exists (select from fenced.waiter w where w.resource = $1)
              and not exists (select from fenced.tombstone t where t.resource = $1))
    on conflict on constraint lease_pkey do update
      set token = granted, holder = $3, expires_at = excluded.expires_at,
          attempts = excluded.attempts, metadata = $7, is_quiet = excluded.is_quiet;
  return granted;
end $$;

-- A floor may be ahead of the clock by a day, because clocks differ, but not by more. A higher one
-- must be a mistake, and would use the tokens up.
create function fenced.greatest_floor() returns bigint
language sql volatile
as $$ select least(fenced.token_of(clock_timestamp()) + 8640000000, 999999999999999) $$;

-- Takes a place at the end of the queue, or says that one still waits there. Under the mutex.
create function fenced.enqueue(
  resource text, holder text, attempt text, wait_ms bigint, channel text, max_waiters integer
) returns text
language plpgsql as $$
declare
  until timestamptz := coalesce(clock_timestamp() + wait_ms * interval '1 ms', 'infinity');
begin
  update fenced.waiter w set seen_at = clock_timestamp(), wait_until = until, channel = $5
    where w.resource = $1 and w.holder = $2 and w.attempt = $3;
  if found then
    return 'waiting';
  end if;
  -- One more attempt of an acquisition that waits takes no more room.
  if max_waiters <= (
    select count(distinct w.holder) from fenced.waiter w
    where w.resource = $1 and w.holder <> $2 and fenced.is_alive(w.wait_until, w.seen_at))
  then
    return 'full';
  end if;
  insert into fenced.waiter (resource, holder, attempt, channel, wait_until, seen_at)
    values ($1, $2, $3, $5, until, clock_timestamp());
  update fenced.lease l set is_quiet = false where l.resource = $1 and l.is_quiet;
  return 'waiting';
end $$;

-- Refuses lists that are empty, too long, or not of one length.
create function fenced.check_lists(most integer, lengths integer[]) returns void
language plpgsql as $$
begin
  if exists (select from unnest(lengths) l
             where l is null or l not between 1 and most or l <> lengths[1]) then
    raise exception using
      errcode = 'array_subscript_error',
      message = format('lists have 1 to %s elements, and all the same number', most);
  end if;
end $$;

-- Takes an attempt out of a lease, which ends with the last one.
create function fenced.without_attempt(lease fenced.lease, attempt text) returns void
language plpgsql as $$
declare
  rest text[] := array_remove(lease.attempts, attempt);
begin
  if rest <> '{}' then
    update fenced.lease l set attempts = rest where l.resource = lease.resource;
  else
    update fenced.lease l
      set holder = '', expires_at = '-infinity', attempts = '{}', metadata = null
      where l.resource = lease.resource;
    perform fenced.wake(lease.resource::text);
  end if;
end $$;

revoke all on function fenced.token_of, fenced.last_token, fenced.this_minute, fenced.left_ms,
  fenced.lock_lease, fenced.try_lock_lease, fenced.is_alive, fenced.flush_commit,
  fenced.has_ended, fenced.was_released, fenced.bury,
  fenced.lease_now, fenced.first_waiter, fenced.wake, fenced.grant_lease, fenced.greatest_floor,
  fenced.enqueue, fenced.without_attempt, fenced.check_lists, fenced.fingerprint,
  fenced.resource_of from public;
