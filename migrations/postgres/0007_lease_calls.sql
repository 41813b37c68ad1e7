-- LEASES: WHAT CLIENTS CALL
--
--   fenced.acquire            asks for a lease, and asks again while it says 'waiting'
--   fenced.acquire_together   several leases at once, or none
--   fenced.renew              renews leases
--   fenced.release            ends a lease
--   fenced.release_hold       ends what one attempt has of a lease
--   fenced.cancel             ends one attempt to acquire, whatever became of it
--   fenced.look               tells waiters whether it is their turn
--   fenced.leases, fenced.force_release   for operators

-- Outcomes:
--   granted      the lease is yours: token, left_ms
--   held         another holder has it, for left_ms at most if it is not renewed
--   waiting      you are in the queue: call again with the same arguments when you are notified on
--                your channel, when left_ms are over, and at least every second. A waiter that is
--                silent for 3 s, or does not take the lease for 3 s when it is its turn, is passed
--                over
--   released     this acquisition or attempt has ended, or its lease ran out: begin a new one
--   full         as many wait as max_waiters allows, or 1000 attempts share the lease
--   late         not_after has passed: this is an old copy of the request, or your clock is wrong
--   implausible  at_least is too high; token is the greatest that can be right
--   exhausted    there are no tokens left
--
-- A resource may have a prefix, as in 'jobs account:42': its lease has nothing to do with that of
-- 'account:42', and the mark that is claimed is that of 'account:42'. Notices and fenced.look leave
-- the prefix out.
--
-- A wait of 0 ms looks once and leaves the queue; null waits without bound. With a channel you are
-- notified, with the payload 'resource fingerprint'. at_least is a token that the store asks for.
-- The token is the greatest of: the last one plus one, the clock in 10 us, at_least.
--
-- claim_for is the name under which this database takes tokens as those of its lock service. With
-- it the grant is claimed in the same step, if nothing is in the way: claimed. Otherwise call
-- fenced.claim, which waits.
--
-- The frequent case is decided here in one statement: the lease is free, its row is quiet, and the
-- mutex is free. Then wait_ms, channel and max_waiters are not looked at. All other cases go to
-- fenced.acquire_in_full, which decides from the beginning. No lock can be in the way of that
-- statement for long: renewals alone lock rows without the mutex, and only rows that are held. Its
-- expressions are made anew for each call, and each function in them costs half a microsecond.
create function fenced.acquire(
  resource text, holder text, attempt text, ttl_ms bigint,
  wait_ms bigint default 0, channel text default '', at_least bigint default 0,
  metadata text default null, max_waiters integer default null,
  not_after timestamptz default null, claim_for text default null,
  out outcome text, out token bigint, out left_ms bigint, out claimed boolean
)
language plpgsql security definer as $$
declare
  digest constant pg_catalog.text := fenced.kept_digest($2);
  now constant pg_catalog.timestamptz := pg_catalog.clock_timestamp();
begin
  if $7 operator(pg_catalog.=) 0 and $8 is null
     and ($10 is null or $10 operator(pg_catalog.>=) now)
     and pg_catalog.current_setting('synchronous_commit') operator(pg_catalog.=) 'on'
     and fenced.try_lock_lease($1) then
    update fenced.lease l
      set token = greatest(l.token operator(pg_catalog.+) 1, fenced.token_of(now)),
          holder = digest,
          expires_at = now
            operator(pg_catalog.+) ($4::fenced.ttl_ms operator(pg_catalog.*) interval '1 ms'),
          attempts = array[$3::fenced.attempt::pg_catalog.text]
      where l.resource operator(pg_catalog.=) $1 and l.holder operator(pg_catalog.=) ''
        and l.is_quiet and l.token operator(pg_catalog.<) 999999999999999
      returning l.token into token;
    if found then
      outcome := 'granted';
      left_ms := $4;
      if $11 is not null then
        claimed := fenced.claim_now(fenced.resource_of($1), token, digest, $11);
      end if;
      return;
    end if;
  end if;
  select a.outcome, a.token, a.left_ms, a.claimed into outcome, token, left_ms, claimed
    from fenced.acquire_in_full($1, digest, $3, $4, $5, $6, $7, $8, $9, $10, $11) a;
end $$;

-- In all cases. The holder is as it is kept.
create function fenced.acquire_in_full(
  resource text, holder text, attempt text, ttl_ms bigint, wait_ms bigint, channel text,
  at_least bigint, metadata text, max_waiters integer, not_after timestamptz, claim_for text,
  out outcome text, out token bigint, out left_ms bigint, out claimed boolean
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  -- The domains refuse what is out of bounds, before anything is written.
  resource_ok constant fenced.lease_name := $1;
  attempt_ok constant fenced.attempt := $3;
  ttl_ok constant fenced.ttl_ms := $4;
  wait constant fenced.wait_ms := $5;
  channel_ok constant fenced.channel := $6;
  floor constant fenced.floor := $7;
  note constant fenced.metadata := $8;
  most constant fenced.max_waiters := $9;
  lease fenced.lease;
  first fenced.waiter;
begin
  perform fenced.flush_commit();
  perform fenced.lock_lease($1);
  if not_after < clock_timestamp() then
    outcome := 'late';
    return;
  end if;
  if floor > 0 and floor > fenced.greatest_floor() then
    outcome := 'implausible';
    token := fenced.greatest_floor();
    return;
  end if;

  lease := fenced.lease_now($1);
  if fenced.has_ended($1, $2, $3) then
    delete from fenced.waiter w where w.resource = $1 and w.holder = $2 and w.attempt = $3;
    outcome := 'released';
    return;
  end if;
  first := fenced.first_waiter($1);

  if lease.holder = $2 then
    -- Sent again, or another attempt of the same acquisition.
    if $3 <> all (lease.attempts) then
      if cardinality(lease.attempts) >= 1000 then
        outcome := 'full';
        return;
      end if;
      update fenced.lease l set attempts = l.attempts || $3 where l.resource = $1;
    end if;
    delete from fenced.waiter w where w.resource = $1 and w.holder = $2 and w.attempt = $3;
    token := lease.token;
    left_ms := fenced.left_ms(lease.expires_at);
  elsif coalesce(lease.holder, '') = '' and (first.holder is null or first.holder = $2) then
    delete from fenced.waiter w where w.resource = $1 and w.holder = $2 and w.attempt = $3;
    token := fenced.grant_lease($1, lease, $2, $3, $4, $7, $8);
    left_ms := $4;
    if token is null then
      outcome := 'exhausted';
      return;
    end if;
  end if;
  if token is not null then
    outcome := 'granted';
    if claim_for is not null then
      claimed := fenced.claim_now(fenced.resource_of($1), token, $2, claim_for);
    end if;
    return;
  end if;

  -- A resource that is free here is kept for the first in the queue.
  left_ms := greatest(1, fenced.left_ms(lease.expires_at));
  perform set_config('synchronous_commit', 'off', true);
  if wait = 0 then
    delete from fenced.waiter w where w.resource = $1 and w.holder = $2 and w.attempt = $3;
    outcome := 'held';
    return;
  end if;
  outcome := fenced.enqueue($1, $2, $3, $5, $6, $9);
end $$;

-- Several leases at once, 1 to 64, all or none, past those who wait. The outcomes are those of
-- fenced.acquire without waiting; tokens are in the order of the resources, which must differ.
create function fenced.acquire_together(
  resources text[], holder text, attempt text, ttls_ms bigint[], at_least bigint[],
  metadata text[], not_after timestamptz default null,
  out outcome text, out tokens bigint[], out left_ms bigint[]
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  resources_ok constant fenced.lease_name[] := $1;
  digest constant text := fenced.kept_digest($2);
  attempt_ok constant fenced.attempt := $3;
  ttls_ok constant fenced.ttl_ms[] := $4;
  floors constant fenced.floor[] := $5;
  notes constant fenced.metadata[] := $6;
  name text;
  lease fenced.lease;
  held_ms bigint;
begin
  perform fenced.check_lists(64, array[
    cardinality($1), cardinality($4), cardinality($5), cardinality($6),
    array_upper($1, 1), array_upper($4, 1), array_upper($5, 1), array_upper($6, 1)]);
  perform fenced.flush_commit();
  for name in select r from unnest($1) r order by r collate "C" loop
    perform fenced.lock_lease(name);
  end loop;
  if not_after < clock_timestamp() then
    outcome := 'late';
    return;
  end if;
  foreach name in array $1 loop
    lease := fenced.lease_now(name);
    if fenced.has_ended(name, digest, $3) then
      outcome := 'released';
      return;
    end if;
    if lease.holder not in ('', digest) then
      held_ms := greatest(held_ms, fenced.left_ms(lease.expires_at), 1);
    end if;
  end loop;
  if held_ms is not null then
    outcome := 'held';
    left_ms := array[held_ms];
    return;
  end if;
  if exists (select from unnest(floors) a where a > fenced.greatest_floor()) then
    outcome := 'implausible';
    tokens := array[fenced.greatest_floor()];
    return;
  end if;
  if exists (select from fenced.lease l
             where l.resource = any ($1) and fenced.last_token(l) >= 999999999999999) then
    outcome := 'exhausted';
    return;
  end if;
  for i in 1 .. cardinality($1) loop
    lease := fenced.lease_now($1[i]);
    if lease.holder = digest then
      update fenced.lease l set attempts = l.attempts || $3
        where l.resource = $1[i] and $3 <> all (l.attempts);
      tokens[i] := lease.token;
      left_ms[i] := fenced.left_ms(lease.expires_at);
    else
      tokens[i] := fenced.grant_lease($1[i], lease, digest, $3, $4[i], $5[i], $6[i]);
      left_ms[i] := $4[i];
    end if;
  end loop;
  outcome := 'granted';
end $$;

-- Renews leases, 1 to 1000, each to its full ttl from now and never to less than it has. One row
-- for each, with its place in the arrays:
--   renewed
--   not_holder  no lease of this holder with this token lives; nothing changed
--   busy        another transaction is deciding about the resource: ask again
-- Locked rows are skipped, so that one commit that hangs holds up no other lease. A standby that is
-- promoted may lack the last renewals.
create function fenced.renew(
  resources text[], tokens bigint[], holders text[], ttls_ms bigint[]
) returns table (place bigint, outcome text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  ttls_ok constant fenced.ttl_ms[] := $4;
  digests text[];
  renewed bigint[];
begin
  perform fenced.check_lists(1000, array[
    cardinality($1), cardinality($2), cardinality($3), cardinality($4),
    array_upper($1, 1), array_upper($2, 1), array_upper($3, 1), array_upper($4, 1)]);
  digests := array(select fenced.kept_digest(h) from unnest($3) with ordinality as a (h, place)
                     order by place);
  -- Flushed, because its holder relies on it. But not on a standby: if the standby were gone, all
  -- leases would end.
  perform set_config('synchronous_commit', 'local', true);
  with asked as (
    select * from unnest($1, $2, digests, $4) with ordinality
      as a (resource, token, holder, ttl_ms, place)
  ), free as materialized (
    select a.place, a.resource, a.ttl_ms from asked a join fenced.lease l using (resource)
    where l.token = a.token and l.holder = a.holder and l.expires_at > clock_timestamp()
    order by l.resource for update of l skip locked
  ), renewed as (
    update fenced.lease l
      set expires_at = greatest(l.expires_at, clock_timestamp() + f.ttl_ms * interval '1 ms')
      from free f where l.resource = f.resource
      returning f.place
  )
  select array_agg(r.place) into renewed from renewed r;
  return query select r, 'renewed' from unnest(renewed) r;
  if cardinality(renewed) = cardinality($1) then
    return; -- as nearly always: what follows compares each with each
  end if;
  return query
    select a.place, case when l.resource is not null then 'busy' else 'not_holder' end
      from unnest($1, $2, digests) with ordinality as a (resource, token, holder, place)
      left join fenced.lease l on l.resource = a.resource and l.token = a.token
        and l.holder = a.holder and l.expires_at > clock_timestamp()
      where a.place <> all (coalesce(renewed, '{}'));
end $$;

-- Outcomes: released (also if it is sent again), not_holder.
--
-- The tombstone may be left out if no copy of a request of this acquisition can still arrive. Then
-- a release of a quiet lease is one statement; only a renewal of the same lease can hold it up.
create function fenced.release(
  resource text, token bigint, holder text, tombstone boolean default true, out outcome text
)
language plpgsql security definer as $$
declare
  is_quiet pg_catalog.bool;
begin
  if pg_catalog.set_config('synchronous_commit', 'off', true) operator(pg_catalog.<>) 'off'
     or not fenced.try_lock_lease($1) then
    perform fenced.lock_lease($1);
  end if;
  update fenced.lease l set holder = '', expires_at = '-infinity', attempts = '{}', metadata = null
    where l.resource operator(pg_catalog.=) $1 and l.token operator(pg_catalog.=) $2
      and l.holder operator(pg_catalog.=) fenced.kept_digest($3)
      and l.expires_at operator(pg_catalog.>) pg_catalog.clock_timestamp()
    returning l.is_quiet into is_quiet;
  if found and is_quiet and not $4 then
    outcome := 'released';
  else
    outcome := fenced.after_release(
      $1, $2, fenced.kept_digest($3), $4, is_quiet is not null);
  end if;
end $$;

-- The rest of a release; the holder is as it is kept. Under the mutex.
create function fenced.after_release(
  resource text, token bigint, holder text, tombstone boolean, is_released boolean
) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if is_released then
    if tombstone then
      perform fenced.bury($1, $3, ''::text, $2);
    end if;
    perform fenced.wake($1);
    return 'released';
  elsif fenced.was_released($1, $2, $3, ''::text) then
    return 'released';
  end if;
  return 'not_holder';
end $$;

-- Gives back what one attempt has of a lease; the lease ends with its last attempt. The holder may
-- acquire again. Outcomes: released (also if it is sent again), not_holder.
create function fenced.release_hold(
  resource text, token bigint, holder text, attempt text, out outcome text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  digest constant text := fenced.kept_digest($3);
  lease fenced.lease;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform fenced.lock_lease($1);
  lease := fenced.lease_now($1);
  if lease.token = $2 and lease.holder = digest and $4 = any (lease.attempts) then
    perform fenced.bury($1, digest, $4, $2);
    perform fenced.without_attempt(lease, $4);
    outcome := 'released';
  elsif fenced.was_released($1, $2, digest, $4) then
    outcome := 'released';
  else
    outcome := 'not_holder';
  end if;
end $$;

-- Ends an attempt: it holds nothing, waits for nothing, and never will. Other attempts of the same
-- acquisition are not touched.
create function fenced.cancel(resource text, holder text, attempt text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  resource_ok constant fenced.lease_name := $1;
  digest constant text := fenced.kept_digest($2);
  attempt_ok constant fenced.attempt := $3;
  lease fenced.lease;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform fenced.lock_lease($1);
  lease := fenced.lease_now($1);
  perform fenced.bury($1, digest, $3, 0::bigint);
  delete from fenced.waiter w where w.resource = $1 and w.holder = digest and w.attempt = $3;
  if lease.holder = digest and $3 = any (lease.attempts) then
    perform fenced.without_attempt(lease, $3);
  elsif lease.holder = '' then
    perform fenced.wake($1); -- it may have been its turn
  end if;
end $$;

-- Ends the lease with this token, whatever its holder. To its holder this looks as if it had run
-- out. Outcomes: ended, with a token that no holder gets and that lies between that lease and the
-- next (the same one if it is sent again); not_held; exhausted.
create function fenced.force_release(
  resource text, token bigint, out outcome text, out revocation bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  lease fenced.lease;
begin
  perform fenced.flush_commit();
  perform fenced.lock_lease($1);
  select f.revocation into revocation from fenced.forced_release f
    where f.resource = $1 and f.token = $2;
  if found then
    outcome := 'ended';
    return;
  end if;
  lease := fenced.lease_now($1);
  if coalesce(lease.holder, '') = '' or lease.token <> $2 then
    outcome := 'not_held';
    return;
  end if;
  if fenced.last_token(lease) = 999999999999999 then
    outcome := 'exhausted';
    return;
  end if;
  update fenced.lease l
    set revocation = fenced.last_token(l) + 1, holder = '', expires_at = '-infinity',
        attempts = '{}', metadata = null
    where l.resource = $1 returning l.revocation into revocation;
  perform fenced.bury($1, lease.holder, ''::text, 0::bigint);
  insert into fenced.forced_release (resource, token, revocation, minute)
    values ($1, $2, revocation, fenced.this_minute());
  -- No notice: this commit is flushed, and would hold the lock of NOTIFY for as long. The first in
  -- the queue looks within a second.
  outcome := 'ended';
end $$;

-- The waiters of this channel, by the fingerprints of their holders and attempts: whether each of
-- them should ask again now, whether it is the first, and when the present lease ends. A waiter
-- that is not listed has to ask again, too.
--
-- For the attempts that are named it counts as a sign of life; a late copy of a request whose
-- client has gone dies, although others look on its channel. It does not count for a waiter whose
-- turn has come: that one has 3 s to ask again, because it keeps the others from a free resource.
create function fenced.look(channel text, alive text[] default '{}')
returns table (
  resource text, holder text, attempt text, turn boolean, first boolean, left_ms bigint
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  channel_ok constant fenced.channel := nullif($1, '');
begin
  perform set_config('synchronous_commit', 'off', true);
  return query
    with mine as materialized (
      select w.resource, w.ticket, w.holder, w.attempt, l.holder as held_by, l.expires_at,
             l.holder = '' or l.expires_at <= clock_timestamp() as free,
             not exists (
               select from fenced.waiter o
               where o.resource = w.resource and o.ticket < w.ticket and o.holder <> w.holder
                 and fenced.is_alive(o.wait_until, o.seen_at)) as first
        from fenced.waiter w join fenced.lease l using (resource)
        where w.channel = $1
    ), living as (
      select w.resource, w.ticket
        from fenced.waiter w join mine m on w.resource = m.resource and w.ticket = m.ticket
        where m.attempt = any ($2) and not (m.free and m.first)
        for update of w skip locked
    ), touched as (
      update fenced.waiter w set seen_at = clock_timestamp() from living l
        where w.resource = l.resource and w.ticket = l.ticket
    )
    select fenced.resource_of(m.resource), fenced.fingerprint(m.holder),
           fenced.fingerprint(fenced.kept_digest(m.attempt)),
           m.held_by = m.holder or m.free and m.first, m.first, fenced.left_ms(m.expires_at)
      from mine m;
end $$;

-- Everything that is held or waited for, or one resource of it. A holder is shown by its
-- fingerprint.
create function fenced.leases(only_resource text default null)
returns table (resource text, token bigint, holder text, left_ms bigint, metadata text,
               waiters bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with living as (
    select l.* from fenced.lease l
    where l.holder <> '' and l.expires_at > clock_timestamp()
      and (only_resource is null or l.resource = only_resource)
  ), waiting as (
    select w.resource, count(distinct w.holder) as waiters from fenced.waiter w
    where fenced.is_alive(w.wait_until, w.seen_at)
      and (only_resource is null or w.resource = only_resource)
    group by w.resource
  )
  select coalesce(l.resource, w.resource), l.token, fenced.fingerprint(l.holder),
         fenced.left_ms(l.expires_at), l.metadata, coalesce(w.waiters, 0)
    from living l full join waiting w on w.resource = l.resource
$$;

-- Forgets tombstones that have served. Each client of Palisade calls this every minute; call it
-- from time to time where there is none.
create function fenced.forget_tombstones() returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  forgotten bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  delete from fenced.tombstone t where t.minute < fenced.this_minute() - 1;
  get diagnostics forgotten = row_count;
  delete from fenced.forced_release f where f.minute < fenced.this_minute() - 1;
  return forgotten;
end $$;

-- The version of this interface, for clients that were written for another one.
create function fenced.lock_service_version() returns integer
language sql immutable as $$ select 2 $$;

revoke all on function fenced.acquire_in_full, fenced.after_release, fenced.force_release
  from public;
grant execute on function fenced.acquire, fenced.acquire_together, fenced.renew, fenced.release,
  fenced.release_hold, fenced.cancel, fenced.look, fenced.leases, fenced.forget_tombstones,
  fenced.lock_service_version to public;
