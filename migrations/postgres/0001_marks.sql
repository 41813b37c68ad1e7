-- The store rule for PostgreSQL 12 or newer: one high-water mark per protected resource.
--
--   fenced.claim         raises a mark: once per grant, in a transaction of its own, before any
--                        read.
--   fenced.begin_fenced  lets a transaction in if its grant is the one that the mark shows. First
--                        thing in every transaction that writes; what it locks is kept until that
--                        one ends.
--
-- Both may be called from any language. They refuse by raising, because an error ends the
-- transaction and frees its locks at once, where an empty result would keep them:
--
--   FN001 stale token      detail {"resource", "presented", "high_water"}
--   FN002 duplicate token  detail {"resource", "presented"}
--   FN003 not claimed      detail {"resource", "presented"}
--   FN004 wrong issuer     detail {"resource", "presented", "current"}
--
--   fenced.settle           waits until no transaction of this grant is under way any more.
--   fenced.high_water       reads a mark.
--   fenced.terminate_older  ends the sessions that a claim has waited for in vain: one that failed
--                           with 55P03 (lock_not_available) and the detail {"resource"}.
--
-- A holder is an opaque text that one acquisition alone knows: a secret, which callers present and
-- these tables never keep. They keep its SHA-256 (fenced.kept_digest), the beginning of which is
-- shown as its fingerprint. So a reader of
--
--   a backup, or a role that may only read these tables, cannot act as a holder: a digest is
--   refused where the presented text is asked for.
--   the server's log can, if that log has statements or their parameters (log_statement,
--   log_min_duration_statement), until the next claim of the resource. Protect such a log like a
--   password. No message and no detail of an error shows a holder.
--
-- Rights: a function that reads or writes these tables runs with the rights of their owner, the
-- role that migrates. Its callers need USAGE on this schema and no right on any table, so they
-- cannot touch a mark but by the rule. Inside such a function current_user is the owner, and
-- session_user the role that logged in. Roles with USAGE are not kept apart from each other: each
-- may claim any resource.
--
-- Only the owner may create objects in this schema: another function of the same name, whose
-- arguments fit better, could otherwise be called in the place of ours. For the same reason each
-- call inside has the exact types of its function.
--
-- The domains below bound the arguments of a caller. They refuse with check_violation (23514), and
-- the name of the constraint says the rule.
--
-- Functions find nothing but the catalog and qualified names. Otherwise a role that may create
-- objects in a schema of the caller's search_path could put its own function in the place of ours,
-- and act as the owner. Most functions have a search_path of their own for that. It costs some
-- microseconds per call, so the functions on the way of every transaction or lease have none, and
-- all names in them are qualified.

-- Names are what the clients can read: visible ASCII without quote and backslash; of issuers,
-- letters, digits and -._:
--
-- They are types, because a check of a table is read and computed anew by each update of any
-- column. Arguments have plain types, because not every driver can send a value of a domain.
create domain fenced.resource_name as text collate "C"
  constraint resource_has_1_to_256_visible_ascii_characters
    check (value is not null and value ~ '^[]-~!#-[]+$' and length(value) <= 256);
create domain fenced.token as bigint
  constraint token_is_1_to_999999999999999 check (value between 1 and 999999999999999);
create domain fenced.service_name as text collate "C"
  constraint issuer_has_1_to_64_letters_digits_or_marks
    check (value is not null and value ~ '^[A-Za-z0-9._:-]{1,64}$');

-- Whether clients can read a text. Only a database without an encoding keeps one that they cannot;
-- for such a text this fails, and says which byte it is (22021).
create function fenced.is_readable(value text) returns boolean
language sql stable parallel safe as $$
  select case when pg_catalog.getdatabaseencoding() operator(pg_catalog.=) 'SQL_ASCII'
    then pg_catalog.length(pg_catalog.convert_to(value, 'SQL_ASCII'), 'UTF8')
         operator(pg_catalog.>=) 0
    else true end
$$;

-- A holder as a caller presents it.
create domain fenced.holder as text
  constraint holder_has_1_to_256_bytes
    check (value is not null and octet_length(value) between 1 and 256);

-- A digest as the tables keep it: 64 hex digits.
create domain fenced.sha256_hex as text
  constraint digest_has_64_hex_digits check (octet_length(value) = 64);

-- The digest to keep of a presented holder, or of an attempt. Postgres inlines this function into
-- its callers.
create function fenced.kept_digest(presented text) returns text
language sql stable parallel safe as $$
  select pg_catalog.encode(pg_catalog.sha256(
    pg_catalog.convert_to(presented::fenced.holder, 'UTF8')), 'hex')
$$;

create table fenced.lock_service (
  only_row boolean primary key default true check (only_row),
  name     fenced.service_name not null
);
comment on table fenced.lock_service is
  'The one lock service whose tokens are taken. The first claim sets it.';

create table fenced.high_water_mark (
  resource   fenced.resource_name primary key,
  token      fenced.token not null,
  holder     fenced.sha256_hex not null,
  issuer     fenced.service_name not null,
  claimed_at timestamptz not null default clock_timestamp()
);
comment on table fenced.high_water_mark is
  'The greatest token claimed per resource, and by whom. It never falls; rows are never deleted.';

-- False, for a condition on a mark that has been found. The planner believes that it costs a lot,
-- and so it looks a mark up by its index. Without it the planner reads the whole table while that
-- has few pages, which costs more with each mark.
create function fenced.is_elsewhere() returns boolean
language plpgsql stable cost 1000000 as $$ begin return false; end $$;

-- The advisory lock of a resource: a claim takes it exclusively, transactions share it. Requests
-- queue here in their order. FOR SHARE alone would let new transactions overtake a waiting claim
-- for ever.
create function fenced.resource_lock_key(resource text) returns bigint
language sql immutable strict parallel safe
as $$ select pg_catalog.hashtextextended(resource, 4711::pg_catalog.int8) $$;

-- Raises the refusal that fits the mark as it is now. The holder is as it is kept.
create function fenced.raise_refusal(
  resource text, token bigint, holder text, issuer text
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  mark fenced.high_water_mark;
begin
  select * into mark from fenced.high_water_mark m where m.resource = raise_refusal.resource;
  if mark.issuer <> raise_refusal.issuer then
    perform fenced.raise_wrong_issuer(raise_refusal.resource, raise_refusal.issuer, mark.issuer);
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

create function fenced.raise_wrong_issuer(resource text, presented text, current text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using
    errcode = 'FN004',
    message = format('"%s" takes tokens of the lock service "%s", not of "%s"',
                     resource, current, presented),
    detail = json_build_object('resource', resource, 'presented', presented, 'current', current);
end $$;

-- The advisory lock of the issuer. Claims share it. A change of the issuer takes it exclusively,
-- and later claims do not overtake that change. No resource has a space in its name.
create function fenced.lock_service_key() returns bigint
language sql immutable parallel safe
as $$ select fenced.resource_lock_key('the issuer'::pg_catalog.text) $$;

-- Keeps the issuer as it is while a claim is under way. The row is locked, too: where the snapshot
-- may be older than the wait, that fails.
create function fenced.check_issuer(resource text, issuer text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  current text;
begin
  perform pg_advisory_xact_lock_shared(fenced.lock_service_key());
  select i.name into current from fenced.lock_service i for share;
  if not found then
    -- Two first claims at once: the slower one waits here for the other and then reads its name.
    insert into fenced.lock_service (name) values (check_issuer.issuer) on conflict do nothing;
    select i.name into current from fenced.lock_service i for share;
  end if;
  if current <> check_issuer.issuer then
    perform fenced.raise_wrong_issuer(check_issuer.resource, check_issuer.issuer, current);
  end if;
end $$;

-- Takes the lock of a resource, behind its open transactions. The detail of its timeout says that
-- they were waited for. No other timeout of a claim has a detail: behind a seal, for example, the
-- claim has waited for the issuer alone.
create function fenced.wait_for_open_transactions(resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock(fenced.resource_lock_key(wait_for_open_transactions.resource));
exception when lock_not_available then
  raise exception using
    errcode = 'lock_not_available',
    message = format('open transactions of "%s" did not end within the lock timeout',
                     wait_for_open_transactions.resource),
    detail = json_build_object('resource', wait_for_open_transactions.resource);
end $$;

-- Call at READ COMMITTED. Calling again with the same grant changes nothing, but waits until the
-- transactions of all holders up to now have ended.
create function fenced.claim(
  resource text, token bigint, holder text, issuer text,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  digest constant text := fenced.kept_digest(claim.holder);
  mark fenced.high_water_mark;
begin
  perform fenced.limit_lock_timeout(lock_timeout_ms);
  -- A mark that a power cut takes back lets a stale holder in again.
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  perform fenced.check_issuer(claim.resource, claim.issuer);

  -- A claim that cannot win is refused before it queues: in the queue it would hold up others.
  select * into mark from fenced.high_water_mark m where m.resource = claim.resource;
  if mark.issuer <> claim.issuer or mark.token > claim.token
     or (mark.token = claim.token and mark.holder <> digest) then
    perform fenced.raise_refusal(claim.resource, claim.token, digest, claim.issuer);
  end if;

  if not pg_try_advisory_xact_lock(fenced.resource_lock_key(claim.resource)) then
    perform fenced.wait_for_open_transactions(claim.resource);
  end if;
  if not fenced.raise_mark(claim.resource, claim.token, digest, claim.issuer) then
    perform fenced.raise_refusal(claim.resource, claim.token, digest, claim.issuer);
  end if;
end $$;

-- Whether the mark shows this grant now; its holder is as it is kept. The caller has the locks of a
-- claim.
create function fenced.raise_mark(resource text, token bigint, holder text, issuer text)
returns boolean
language plpgsql as $$
begin
  update fenced.high_water_mark m
    set token = $2, holder = $3, claimed_at = pg_catalog.clock_timestamp()
    where m.resource operator(pg_catalog.=) $1 and m.issuer operator(pg_catalog.=) $4
      and m.token operator(pg_catalog.<) $2;
  if found then
    return true;
  end if;
  insert into fenced.high_water_mark (resource, token, holder, issuer) values ($1, $2, $3, $4)
    on conflict do nothing;
  if found then
    return true;
  end if;
  perform from fenced.high_water_mark m
    where m.resource operator(pg_catalog.=) $1 and m.token operator(pg_catalog.=) $2
      and m.holder operator(pg_catalog.=) $3 and m.issuer operator(pg_catalog.=) $4;
  return found;
end $$;

-- A claim that never waits, for fenced.acquire, which holds a lock already. The holder is as it is
-- kept. False: another transaction is in its way, or it would be refused, or it is the first claim
-- of all; fenced.claim says which.
create function fenced.claim_now(resource text, token bigint, holder text, issuer text)
returns boolean
language plpgsql as $$
begin
  if not pg_catalog.pg_try_advisory_xact_lock_shared(fenced.lock_service_key())
     or not pg_catalog.pg_try_advisory_xact_lock(fenced.resource_lock_key($1)) then
    return false;
  end if;
  -- In statements after the locks, so that they see what was committed before these.
  update fenced.high_water_mark m
    set token = $2, holder = $3, claimed_at = pg_catalog.clock_timestamp()
    where m.resource operator(pg_catalog.=) $1 and m.issuer operator(pg_catalog.=) $4
      and m.token operator(pg_catalog.<) $2
      and (select i.name from fenced.lock_service i) operator(pg_catalog.=) $4;
  if found then
    return true;
  end if;
  if (select i.name from fenced.lock_service i) operator(pg_catalog.=) $4 then
    return fenced.raise_mark($1, $2, $3, $4);
  end if;
  return false;
end $$;

-- This timeout, or that of the session if it is less. The session has one.
create function fenced.min_session_timeout(setting text, milliseconds integer) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  session_value text := current_setting(setting);
  -- Some are shown without a unit.
  session_milliseconds numeric := case when session_value ~ '^[0-9]+$' then session_value::numeric
    else extract(epoch from session_value::interval) * 1000 end;
begin
  if session_milliseconds > 0 and (milliseconds = 0 or session_milliseconds <= milliseconds) then
    return session_value;
  end if;
  return milliseconds::text;
end $$;

-- The lesser one of this timeout and that of the session. 0 is without bound, null is not given.
--
-- Most sessions have none. Postgres inlines this function into its callers, which have a search
-- path. It would not inline one with a search path of its own.
create function fenced.min_timeout(setting text, milliseconds integer) returns text
language sql stable as $$
  select case
    when milliseconds is null then pg_catalog.current_setting(setting)
    when pg_catalog.current_setting(setting) operator(pg_catalog.=) '0' then milliseconds::text
    else fenced.min_session_timeout(setting, milliseconds)
  end
$$;

-- Null leaves the timeout as it is. The callers have a search path.
create function fenced.limit_lock_timeout(milliseconds integer) returns void
language plpgsql as $$
begin
  if milliseconds is not null then
    perform set_config(
      'lock_timeout', fenced.min_timeout('lock_timeout'::text, milliseconds), true);
  end if;
end $$;

-- The mark of a resource; no row if it was never claimed. Without the holder.
create function fenced.high_water(resource text) returns table (token bigint, issuer text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.token, m.issuer from fenced.high_water_mark m where m.resource = high_water.resource
$$;

-- A role with USAGE on the schema may call these, whatever the default for functions is. They call
-- the rest.
revoke all on all routines in schema fenced from public;
grant execute on function fenced.claim, fenced.high_water, fenced.resource_lock_key to public;

-- Which migrations have been applied: the migrations table can be read by every role with USAGE on
-- this schema. A role that may create nothing can find out whether the schema is the one that it
-- needs.
grant select on fenced._migrations to public;
