-- What only administrators do: another lock service takes over (seal), a mark is set by hand
-- (reset). Both write down who did what and why. Nobody but the owner may call these functions;
-- grant EXECUTE on them to the role of your operators, and to no application.
--
-- They refuse by raising:
--   FN020 the mark is not what the caller expects     detail {"resource", "expected", "current"}
--   FN021 the issuer is not what the caller expects   detail {"expected", "current"}

create table fenced.administration (
  id          bigint generated always as identity primary key,
  done_at     timestamptz not null default clock_timestamp(),
  done_by     text not null default session_user,
  action      text not null check (action in ('seal', 'seal mark', 'reset mark')),
  resource    text collate "C",
  from_token  bigint,
  to_token    bigint,
  from_issuer text collate "C",
  to_issuer   text collate "C",
  reason      text not null check (reason ~ '\S')
);
comment on table fenced.administration is 'What administrators did to issuer and marks, and why.';

-- A holder that nobody is.
create function fenced.nobody() returns text
language sql volatile set search_path = pg_catalog, pg_temp
as $$ select 'nobody:' || md5(concat(random(), clock_timestamp())) $$;

create function fenced.refuse_expectation(
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
as $$ select i.name from fenced.issuer i $$;

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
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', fenced.tighter('lock_timeout', lock_timeout_ms), true);
  end if;
  perform set_config('synchronous_commit', 'on', true);
  perform pg_advisory_xact_lock(fenced.issuer_turnstile());
  insert into fenced.issuer (name) values (seal_issuer.from_issuer) on conflict do nothing;
  select i.name into current from fenced.issuer i for update;
  if current = seal_issuer.to_issuer then
    return;
  elsif current <> seal_issuer.from_issuer then
    perform fenced.refuse_expectation(null, to_json(seal_issuer.from_issuer), to_json(current));
  end if;
  update fenced.issuer set name = seal_issuer.to_issuer;
  insert into fenced.administration (action, from_issuer, to_issuer, reason)
    values ('seal', seal_issuer.from_issuer, seal_issuer.to_issuer, seal_issuer.reason);
end $$;

-- Marks that are left of an issuer, by name, from after a name on.
create function fenced.marks_of(issuer text, after text, count integer) returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.resource from fenced.mark m
  where m.issuer = marks_of.issuer and m.resource > marks_of.after
  order by m.resource limit marks_of.count
$$;

-- The other lock services of which there are marks, and how many: what seals that were not finished
-- have left.
create function fenced.marks_left(issuer text) returns table (of_issuer text, marks bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.issuer, count(*) from fenced.mark m where m.issuer <> marks_left.issuer
  group by m.issuer order by m.issuer
$$;

-- Where things stand before a handover: the greatest mark of all, of which resource, and how many
-- marks there are of an issuer. No row if there is no mark.
create function fenced.survey(issuer text) returns table (resource text, token bigint, marks bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.resource, m.token, (select count(*) from fenced.mark o where o.issuer = survey.issuer)
  from fenced.mark m order by m.token desc limit 1
$$;

-- Second step, for each of them in a transaction of its own: shuts out whoever the mark shows, once
-- their transactions have ended. Only tokens above the greater of the two are claimed afterwards.
-- Again it changes nothing. Call at READ COMMITTED.
create function fenced.seal_mark(
  resource text, from_issuer text, to_issuer text, above bigint, reason text,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current text;
  mark fenced.mark;
begin
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', fenced.tighter('lock_timeout', lock_timeout_ms), true);
  end if;
  perform set_config('synchronous_commit', 'on', true);
  perform pg_advisory_xact_lock_shared(fenced.issuer_turnstile());
  select i.name into current from fenced.issuer i for share;
  if current is distinct from seal_mark.to_issuer then
    perform fenced.refuse_expectation(null, to_json(seal_mark.to_issuer), to_json(current));
  end if;
  perform pg_advisory_xact_lock(fenced.turnstile(seal_mark.resource));
  select * into mark from fenced.mark m
    where m.resource = seal_mark.resource and m.issuer = seal_mark.from_issuer for update;
  if not found then
    return;
  end if;
  update fenced.mark m
    set token = greatest(mark.token, seal_mark.above), issuer = seal_mark.to_issuer,
        holder = fenced.nobody(), claimed_at = clock_timestamp()
    where m.resource = seal_mark.resource;
  insert into fenced.administration
      (action, resource, from_token, to_token, from_issuer, to_issuer, reason)
    values ('seal mark', seal_mark.resource, mark.token, greatest(mark.token, seal_mark.above),
            mark.issuer, seal_mark.to_issuer, seal_mark.reason);
end $$;

-- Sets a mark that stands at "expected", and shuts out whoever it shows. LOWERING LETS STALE
-- HOLDERS BACK IN: whoever was issued a token above the new mark, ever, may claim it. Call at READ
-- COMMITTED.
create function fenced.reset_high_water(
  resource text, expected bigint, new_mark bigint, reason text, lowering boolean default false,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  mark fenced.mark;
begin
  if new_mark = expected or (new_mark < expected) <> lowering then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s is not %s %s', new_mark,
                       case when lowering then 'below' else 'above' end, expected),
      hint = 'Say lowering => true to lower a mark.';
  end if;
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', fenced.tighter('lock_timeout', lock_timeout_ms), true);
  end if;
  perform set_config('synchronous_commit', 'on', true);
  perform pg_advisory_xact_lock(fenced.turnstile(reset_high_water.resource));
  select * into mark from fenced.mark m where m.resource = reset_high_water.resource for update;
  if mark.token is distinct from expected then
    perform fenced.refuse_expectation(
      reset_high_water.resource, to_json(expected), to_json(mark.token));
  end if;
  update fenced.mark m
    set token = new_mark, holder = fenced.nobody(), claimed_at = clock_timestamp()
    where m.resource = reset_high_water.resource;
  insert into fenced.administration
      (action, resource, from_token, to_token, from_issuer, to_issuer, reason)
    values ('reset mark', reset_high_water.resource, expected, new_mark, mark.issuer, mark.issuer,
            reset_high_water.reason);
end $$;

revoke all on function fenced.nobody, fenced.refuse_expectation, fenced.current_issuer,
  fenced.seal_issuer, fenced.marks_of, fenced.marks_left, fenced.survey, fenced.seal_mark,
  fenced.reset_high_water from public;
