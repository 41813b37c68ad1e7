-- ADMINISTRATION
--
-- Functions for administrators only: another lock service takes over (seal), a mark is set by hand
-- (reset). Both write down the administrator, the change and the reason. Only the owner may call
-- these functions; grant EXECUTE on them to the role of your operators, and to no application.
--
-- They refuse by raising:
--   FN020 the mark is not what the caller expects     detail {"resource", "expected", "current"}
--   FN021 the issuer is not what the caller expects   detail {"expected", "current"}

create domain fenced.reason as text
  constraint reason_has_1_to_500_characters
    check (value is not null and value ~ '\S' and length(value) <= 500);

create table fenced.admin_log (
  id          bigint generated always as identity primary key,
  done_at     timestamptz not null default clock_timestamp(),
  done_by     text not null default session_user,
  action      text not null check (action in ('seal', 'seal mark', 'reset mark')),
  resource    text collate "C",
  from_token  bigint,
  to_token    bigint,
  from_issuer text collate "C",
  to_issuer   text collate "C",
  reason      fenced.reason not null
);
comment on table fenced.admin_log is 'What administrators did to issuer and marks, and why.';

-- The holder of a mark that no holder may use: no digest has these characters.
create function fenced.no_holder() returns text
language sql immutable parallel safe as $$ select pg_catalog.repeat('-', 64) $$;

create function fenced.raise_unexpected(
  resource text, expected json, current json
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using
    errcode = case when resource is null then 'FN021' else 'FN020' end,
    message = format('%s is %s, not %s: nothing was changed',
                     coalesce(format('the mark of "%s"', resource), 'the issuer'),
                     coalesce(current::text, 'not there'), expected),
    detail = json_strip_nulls(json_build_object(
      'resource', resource, 'expected', expected, 'current', current));
end $$;

-- The lock service whose tokens are taken; null before the first claim.
create function fenced.current_issuer() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select i.name from fenced.lock_service i $$;

-- First step of a seal: from here on tokens of the new issuer are claimed and none of the old one.
-- Waits for the claims that are under way, and those that come later wait for it. Again it changes
-- nothing. Call at READ COMMITTED.
create function fenced.seal_issuer(
  from_issuer text, to_issuer text, reason text,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current text;
begin
  perform fenced.limit_lock_timeout(lock_timeout_ms);
  perform set_config('synchronous_commit', 'on', true);
  perform pg_advisory_xact_lock(fenced.lock_service_key());
  insert into fenced.lock_service (name) values (seal_issuer.from_issuer) on conflict do nothing;
  select i.name into current from fenced.lock_service i for update;
  if current = seal_issuer.to_issuer then
    return;
  elsif current <> seal_issuer.from_issuer then
    perform fenced.raise_unexpected(null::text, to_json(seal_issuer.from_issuer), to_json(current));
  end if;
  update fenced.lock_service set name = seal_issuer.to_issuer;
  insert into fenced.admin_log (action, from_issuer, to_issuer, reason)
    values ('seal', seal_issuer.from_issuer, seal_issuer.to_issuer, seal_issuer.reason);
end $$;

-- Resources whose marks are of this issuer, ordered by name, from after a name on.
create function fenced.resources_of_issuer(issuer text, after text, count integer)
returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.resource from fenced.high_water_mark m
  where m.issuer = resources_of_issuer.issuer and m.resource > resources_of_issuer.after
  order by m.resource limit resources_of_issuer.count
$$;

-- The other lock services of which there are marks, and how many: unfinished seals have left them.
create function fenced.marks_of_others(issuer text)
returns table (of_issuer text, marks bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.issuer, count(*) from fenced.high_water_mark m where m.issuer <> marks_of_others.issuer
  group by m.issuer order by m.issuer
$$;

-- The state before a handover: the greatest mark of all, its resource, and the number of marks of
-- an issuer. No row if there is no mark.
create function fenced.handover_status(issuer text)
returns table (resource text, token bigint, marks bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.resource, m.token,
    (select count(*) from fenced.high_water_mark o where o.issuer = handover_status.issuer)
  from fenced.high_water_mark m order by m.token desc limit 1
$$;

-- Second step, for each of them in a transaction of its own: shuts out the holder that the mark
-- shows, once its transactions have ended. Only tokens above the greater of the two are claimed
-- afterwards. Again it changes nothing. Call at READ COMMITTED.
create function fenced.seal_mark(
  resource text, from_issuer text, to_issuer text, above bigint, reason text,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current text;
  mark fenced.high_water_mark;
begin
  perform fenced.limit_lock_timeout(lock_timeout_ms);
  perform set_config('synchronous_commit', 'on', true);
  perform pg_advisory_xact_lock_shared(fenced.lock_service_key());
  select i.name into current from fenced.lock_service i for share;
  if current is distinct from seal_mark.to_issuer then
    perform fenced.raise_unexpected(null::text, to_json(seal_mark.to_issuer), to_json(current));
  end if;
  perform pg_advisory_xact_lock(fenced.resource_lock_key(seal_mark.resource));
  select * into mark from fenced.high_water_mark m
    where m.resource = seal_mark.resource and m.issuer = seal_mark.from_issuer for update;
  if not found then
    return;
  end if;
  update fenced.high_water_mark m
    set token = greatest(mark.token, seal_mark.above), issuer = seal_mark.to_issuer,
        holder = fenced.no_holder(), claimed_at = clock_timestamp()
    where m.resource = seal_mark.resource;
  insert into fenced.admin_log
      (action, resource, from_token, to_token, from_issuer, to_issuer, reason)
    values ('seal mark', seal_mark.resource, mark.token, greatest(mark.token, seal_mark.above),
            mark.issuer, seal_mark.to_issuer, seal_mark.reason);
end $$;

-- Sets a mark that stands at "expected", and shuts out the holder that it shows. LOWERING LETS
-- STALE HOLDERS BACK IN: a holder that was ever issued a token above the new mark may claim it.
-- Call at READ COMMITTED.
create function fenced.reset_high_water(
  resource text, expected bigint, new_mark bigint, reason text, lowering boolean default false,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  mark fenced.high_water_mark;
begin
  if expected is null or new_mark is null or new_mark = expected
     or (new_mark < expected) is distinct from lowering then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s is not %s %s', new_mark,
                       case when lowering then 'below' else 'above' end, expected),
      hint = 'Say lowering => true to lower a mark.';
  end if;
  perform fenced.limit_lock_timeout(lock_timeout_ms);
  perform set_config('synchronous_commit', 'on', true);
  perform pg_advisory_xact_lock(fenced.resource_lock_key(reset_high_water.resource));
  select * into mark from fenced.high_water_mark m
    where m.resource = reset_high_water.resource for update;
  if mark.token is distinct from expected then
    perform fenced.raise_unexpected(
      reset_high_water.resource, to_json(expected), to_json(mark.token));
  end if;
  update fenced.high_water_mark m
    set token = new_mark, holder = fenced.no_holder(), claimed_at = clock_timestamp()
    where m.resource = reset_high_water.resource;
  insert into fenced.admin_log
      (action, resource, from_token, to_token, from_issuer, to_issuer, reason)
    values ('reset mark', reset_high_water.resource, expected, new_mark, mark.issuer, mark.issuer,
            reset_high_water.reason);
end $$;

revoke all on function fenced.no_holder, fenced.raise_unexpected, fenced.current_issuer,
  fenced.seal_issuer, fenced.resources_of_issuer, fenced.marks_of_others, fenced.handover_status,
  fenced.seal_mark, fenced.reset_high_water from public;
