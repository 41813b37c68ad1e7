-- FORGETTING
--
-- A mark and a lease row for each resource that was ever locked would stay for ever. Here idle ones
-- are deleted, and a floor takes their place: in the transaction that deletes a mark, the floor of
-- the store rises to its token. Without a mark only a token above the floor is claimed, so a token
-- that was shut out stays shut out. A holder of a deleted mark is refused as stale.
--
-- The floor counts for all resources. So a mark is deleted only if its token is below each token
-- that a present holder may have: below the clock as it was when the mark grew too old. Tokens have
-- to follow that clock, or one revision that the caller names. A mark that is far ahead stays.
--
-- fenced.forget_marks, fenced.forget_leases and fenced.reset_floor are for operators: only the
-- owner may call them; grant EXECUTE to the role of your operators, and to no application. They
-- refuse by raising:
--   FN020 the floor is not what the caller expects    detail {"expected", "current"}
--   FN022 nothing may be forgotten in this way        detail {"reason"}

create domain fenced.longest_hold as interval
  constraint longest_hold_is_1_hour_to_366_days
    check (value is not null and value between interval '1 hour' and interval '366 days');

create table fenced.forgotten (
  only_row     boolean primary key default true check (only_row),
  marks        bigint not null default 0,     -- the greatest token of a forgotten mark
  leases       bigint not null default 0,     -- the greatest token of a forgotten lease
  longest_hold fenced.longest_hold not null default interval '1 hour'
);
comment on table fenced.forgotten is
  'What is left of forgotten marks and leases: without a row of its own a resource takes only '
  'tokens above.';
insert into fenced.forgotten default values;

-- Leases whose names have a prefix, by their resources. The index is empty if none has.
create index prefixed_lease on fenced.lease (fenced.resource_of(resource::text))
  where pg_catalog.strpos(resource::text, ' ') operator(pg_catalog.>) 0;

comment on table fenced.high_water_mark is
  'The greatest token claimed per resource, and by whom. It never falls. Idle rows are forgotten.';
comment on table fenced.lease is
  'One row per resource that was locked, with its present lease. Tokens never fall. Idle rows are '
  'forgotten.';

-- As in the first migration; and without a mark, a token up to the floor is stale.
create or replace function fenced.raise_refusal(
  resource text, token bigint, holder text, issuer text
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  mark fenced.high_water_mark;
  floor bigint;
begin
  select * into mark from fenced.high_water_mark m where m.resource = raise_refusal.resource;
  if mark.token is null then
    select f.marks into floor from fenced.forgotten f;
  end if;
  if mark.issuer <> raise_refusal.issuer then
    perform fenced.raise_wrong_issuer(raise_refusal.resource, raise_refusal.issuer, mark.issuer);
  elsif floor > 0 and floor >= raise_refusal.token then
    raise exception using
      errcode = 'FN001',
      message = format(
        'stale fencing token %s for "%s": its mark is forgotten, and the floor is %s',
        raise_refusal.token, raise_refusal.resource, floor),
      detail = json_build_object('resource', raise_refusal.resource,
                                 'presented', raise_refusal.token, 'high_water', floor,
                                 'forgotten', true),
      hint = 'Acquire the lock afresh, with a token above the floor.';
  elsif mark.token > raise_refusal.token then
    raise exception using
      errcode = 'FN001',
      message = format('stale fencing token %s for "%s": the high-water mark is %s',
                       raise_refusal.token, raise_refusal.resource, mark.token),
      detail = json_build_object('resource', raise_refusal.resource,
                                 'presented', raise_refusal.token, 'high_water', mark.token),
      hint = 'A newer holder has claimed the resource. Acquire the lock afresh.';
  elsif mark.token = raise_refusal.token and mark.holder <> raise_refusal.holder then
    raise exception using
      errcode = 'FN002',
      message = format('fencing token %s for "%s" was claimed by another holder',
                       raise_refusal.token, raise_refusal.resource),
      detail = json_build_object('resource', raise_refusal.resource,
                                 'presented', raise_refusal.token),
      hint = 'The lock service issued the token twice. Acquire the lock afresh.';
  elsif mark.token = raise_refusal.token then
    raise exception using
      errcode = 'serialization_failure',
      message = format('the mark of "%s" moved during the check', raise_refusal.resource);
  else
    raise exception using
      errcode = 'FN003',
      message = format('fencing token %s for "%s" has not been claimed',
                       raise_refusal.token, raise_refusal.resource),
      detail = json_build_object('resource', raise_refusal.resource,
                                 'presented', raise_refusal.token),
      hint = 'Call fenced.claim once after acquiring the lock.';
  end if;
end $$;

-- Whether the mark shows this grant now; its holder is as it is kept. The caller has the locks of a
-- claim, so the mark is not forgotten meanwhile. Where the snapshot may be older than these locks,
-- the floor is locked, which fails if it has risen since.
create or replace function fenced.raise_mark(
  resource text, token bigint, holder text, issuer text
) returns boolean
language plpgsql as $$
begin
  update fenced.high_water_mark m
    set token = $2, holder = $3, claimed_at = pg_catalog.clock_timestamp()
    where m.resource operator(pg_catalog.=) $1 and m.issuer operator(pg_catalog.=) $4
      and m.token operator(pg_catalog.<) $2;
  if found then
    return true;
  end if;
  if pg_catalog.current_setting('transaction_isolation')
     operator(pg_catalog.<>) 'read committed' then
    perform from fenced.forgotten f for share;
  end if;
  insert into fenced.high_water_mark (resource, token, holder, issuer)
    select $1, $2, $3, $4
    from fenced.forgotten f
    where f.marks operator(pg_catalog.=) 0 or $2 operator(pg_catalog.>) f.marks
    on conflict do nothing;
  if found then
    return true;
  end if;
  perform from fenced.high_water_mark m
    where m.resource operator(pg_catalog.=) $1 and m.token operator(pg_catalog.=) $2
      and m.holder operator(pg_catalog.=) $3 and m.issuer operator(pg_catalog.=) $4;
  return found;
end $$;

-- As before; and the first lease of a resource, as far as its rows go, is above the floor.
create or replace function fenced.grant_lease(
  resource text, free fenced.lease, holder text, attempt text, ttl_ms bigint, at_least bigint,
  metadata text
) returns bigint
language plpgsql as $$
declare
  granted constant bigint := greatest(
    fenced.last_token(free) + 1, fenced.token_of(clock_timestamp()), at_least,
    case when free.resource is null then (select f.leases from fenced.forgotten f) + 1 end);
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

-- Says of a mark that its holder still needs it. False: the mark does not show this grant, or an
-- open transaction has locked it; ask again. Not inside a transaction of the holder.
create function fenced.refresh_mark(resource text, token bigint, holder text, issuer text)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- A refresh that a power cut takes back comes again.
  perform set_config('synchronous_commit', 'off', true);
  update fenced.high_water_mark m set claimed_at = clock_timestamp()
    where m.ctid = any (array(
      select o.ctid from fenced.high_water_mark o
      where o.resource = refresh_mark.resource and o.token = refresh_mark.token
        and o.holder = fenced.kept_digest(refresh_mark.holder) and o.issuer = refresh_mark.issuer
      for no key update skip locked));
  return found;
end $$;

-- States how long a client that claims by hand may hold: no younger mark is forgotten from now on.
-- Marks that FencedLocks has claimed are refreshed, and need no such statement. It only rises.
create function fenced.state_longest_hold(longest_hold interval) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  stated constant fenced.longest_hold := state_longest_hold.longest_hold;
begin
  update fenced.forgotten f set longest_hold = stated where f.longest_hold < stated;
end $$;

-- The floor of the marks; 0 if none was ever forgotten.
create function fenced.mark_floor() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select f.marks from fenced.forgotten f $$;

create function fenced.raise_not_forgettable(reason text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using
    errcode = 'FN022', message = format('nothing was forgotten: %s', reason),
    detail = json_build_object('reason', reason);
end $$;

-- The time before which a row is idle.
create function fenced.idle_since(older_than interval) returns timestamptz
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  least interval;
begin
  select f.longest_hold into least from fenced.forgotten f;
  if older_than is null or older_than < least then
    perform fenced.raise_not_forgettable(format(
      'a holder may hold for %s, so marks have to be older than that, not than %s',
      least, older_than));
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using
      errcode = 'invalid_transaction_state',
      message = 'forgetting needs a transaction at READ COMMITTED',
      hint = 'An older snapshot would not show what was claimed meanwhile.';
  end if;
  -- Deletion and floor are one commit. A power cut that takes one back takes both.
  perform set_config('synchronous_commit', 'off', true);
  return clock_timestamp() - older_than;
end $$;

-- Forgets idle marks, by the order of their resources, from after a name on: "most" at most, and
-- their number is returned. "last" is where to go on; null: there are no more.
--
-- "below" is a token that the lock service has issued, if its tokens are the revisions of one
-- counter. Without it, tokens follow the clock in 10 us. A store that has a mark of fewer digits is
-- then refused. (The first call of a pass looks, at all marks.)
--
-- A mark is idle if it is that old, belongs to the issuer in place, is below the clock as it was
-- then, or below "below", and neither an open transaction nor a living lease of its resource is in
-- this database.
create function fenced.forget_marks(
  older_than interval, below bigint default null, after text default '',
  most integer default 200, out forgotten integer, out last text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  before constant timestamptz := fenced.idle_since(older_than);
  ceiling constant bigint := case when below is null then fenced.token_of(before)
    else least(below, fenced.token_of(clock_timestamp())) end; -- least passes over a null
  current text;
  small text;
  idle text[];
  seen integer;
  top bigint;
begin
  forgotten := 0;
  perform pg_advisory_xact_lock_shared(fenced.lock_service_key());
  select i.name into current from fenced.lock_service i;
  if below is null and after = '' then
    select m.resource into small from fenced.high_water_mark m
      where m.token < 100000000000000 limit 1;
    if found then
      perform fenced.raise_not_forgettable(format(
        'tokens do not follow the clock, see the mark of "%s"; a floor would shut out others',
        small));
    end if;
  end if;

  -- A resource that a transaction or a claim is in is passed over. The locks make the next
  -- statement see what was claimed before.
  with old as materialized (
    select m.resource from fenced.high_water_mark m
    where m.resource > after and m.claimed_at < before and m.token < ceiling
      and m.issuer = current
    order by m.resource limit most
  )
  select array_agg(o.resource::text) filter (where
           not fenced.is_leased(o.resource::text)
           and pg_try_advisory_xact_lock(fenced.resource_lock_key(o.resource::text))),
         count(*), max(o.resource)
    into idle, seen, last from old o;
  with deleted as (
    delete from fenced.high_water_mark m
    where m.resource = any (idle) and m.claimed_at < before and m.token < ceiling
      and m.issuer = current
    returning m.token
  )
  select count(*), max(d.token) into forgotten, top from deleted d;
  update fenced.forgotten f set marks = top where f.marks < top;
  if seen < most then
    last := null;
  end if;
end $$;

-- Whether a lease of this resource lives, of any prefix.
create function fenced.is_leased(resource text) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return exists (
    select from fenced.lease l
    where l.resource = $1 and l.holder <> '' and l.expires_at > clock_timestamp())
  or exists (
    select from fenced.lease l
    where fenced.resource_of(l.resource::text) = $1 and strpos(l.resource::text, ' ') > 0
      and l.holder <> '' and l.expires_at > clock_timestamp());
end $$;

-- Forgets idle rows of leases, in the same manner: free for that long, and not waited for. A row
-- that was locked again since then has a newer token.
create function fenced.forget_leases(
  older_than interval, after text default '', most integer default 200,
  out forgotten integer, out last text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  before constant timestamptz := fenced.idle_since(older_than);
  ceiling constant bigint := fenced.token_of(before);
  idle text[];
  seen integer;
  top bigint;
begin
  forgotten := 0;
  with old as materialized (
    select l.resource from fenced.lease l
    where l.resource > after and l.token < ceiling and l.revocation < ceiling
      and (l.holder = '' or l.expires_at < before)
    order by l.resource limit most
  )
  select array_agg(o.resource::text) filter (where fenced.try_lock_lease(o.resource::text)),
         count(*), max(o.resource)
    into idle, seen, last from old o;
  delete from fenced.waiter w
    where w.resource = any (idle) and not fenced.is_alive(w.wait_until, w.seen_at);
  with deleted as (
    delete from fenced.lease l
    where l.resource = any (idle) and l.token < ceiling and l.revocation < ceiling
      and (l.holder = '' or l.expires_at < before)
      and not exists (select from fenced.waiter w where w.resource = l.resource)
    returning fenced.last_token(l) as token
  )
  select count(*), max(d.token) into forgotten, top from deleted d;
  update fenced.forgotten f set leases = top where f.leases < top;
  if seen < most then
    last := null;
    perform fenced.forget_tombstones();
  end if;
end $$;

-- A step of a handover, after the issuer was changed: resources whose marks were forgotten take
-- only tokens above this number, too, as those whose marks are sealed.
create function fenced.seal_floor(
  from_issuer text, to_issuer text, above bigint, reason text
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current text;
  floor bigint;
begin
  perform set_config('synchronous_commit', 'on', true);
  perform pg_advisory_xact_lock_shared(fenced.lock_service_key());
  select i.name into current from fenced.lock_service i for share;
  if current is distinct from seal_floor.to_issuer then
    perform fenced.raise_unexpected(null::text, to_json(seal_floor.to_issuer), to_json(current));
  end if;
  select f.marks into floor from fenced.forgotten f for update;
  if floor > 0 and floor < above then
    update fenced.forgotten f set marks = above;
    insert into fenced.admin_log
        (action, from_token, to_token, from_issuer, to_issuer, reason)
      values ('seal mark', floor, above, seal_floor.from_issuer, seal_floor.to_issuer,
              seal_floor.reason);
  end if;
end $$;

-- Lowers the floor, which stands at "expected". THIS LETS STALE HOLDERS BACK IN: without a mark of
-- its resource, each holder that was ever issued a token above the new floor may claim it.
create function fenced.reset_floor(expected bigint, new_floor bigint, reason text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  floor bigint;
begin
  if expected is null or new_floor is null or new_floor < 0 or new_floor >= expected then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s is not below %s', new_floor, expected);
  end if;
  perform set_config('synchronous_commit', 'on', true);
  select f.marks into floor from fenced.forgotten f for update;
  if floor is distinct from expected then
    raise exception using
      errcode = 'FN020',
      message = format('the floor is %s, not %s: nothing was changed', floor, expected),
      detail = json_build_object('expected', expected, 'current', floor);
  end if;
  update fenced.forgotten f set marks = new_floor;
  insert into fenced.admin_log (action, from_token, to_token, from_issuer, to_issuer, reason)
    select 'reset mark', expected, new_floor, i.name, i.name, reset_floor.reason
    from (select) as one left join fenced.lock_service i on true;
end $$;

revoke all on function fenced.refresh_mark, fenced.state_longest_hold, fenced.mark_floor,
  fenced.raise_not_forgettable, fenced.idle_since, fenced.forget_marks, fenced.is_leased,
  fenced.forget_leases, fenced.seal_floor, fenced.reset_floor from public;
grant execute on function fenced.refresh_mark, fenced.state_longest_hold to public;
