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
-- Rights: what reads or writes these tables runs with the rights of its owner, the role that
-- migrates. Its callers need USAGE on this schema and no right on any table, so they cannot touch
-- a mark but by the rule. In there current_user is the owner; who has logged in is session_user.
-- Roles with USAGE are not kept apart from each other: each may claim any resource.
--
-- Only the owner may create objects in this schema: another function of the same name, whose
-- arguments fit better, could otherwise be called in the place of ours. For the same reason each
-- call inside has the exact types of its function.
--
-- What a caller may send is bounded by the domains below. They refuse with check_violation (23514),
-- and the name of the constraint says the rule.
--
-- Functions find nothing but the catalog and what is qualified: otherwise a role that may create
-- objects in a schema of the caller's search_path could put its own function between, and act as
-- the owner. A search_path of their own sees to that, but costs a microsecond per call: what every
-- transaction goes through has none, and is qualified throughout.

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
language sql immutable parallel safe as $$
  select case when pg_catalog.getdatabaseencoding() operator(pg_catalog.=) 'SQL_ASCII'
    then pg_catalog.length(pg_catalog.convert_to(value, 'SQL_ASCII'), 'UTF8')
         operator(pg_catalog.>=) 0
    else true end
$$;

-- What a caller presents.
create domain fenced.holder as text
  constraint holder_has_1_to_256_bytes
    check (value is not null and octet_length(value) between 1 and 256);

-- What is kept of that: 64 hex digits.
create domain fenced.sha256_hex as text
  constraint digest_has_64_hex_digits check (octet_length(value) = 64);

-- What is kept of a presented holder, or of an attempt. It becomes a part of what calls it.
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

-- The advisory lock of a resource: a claim takes it exclusively, transactions share it. Requests
-- queue here in their order. FOR SHARE alone would let new transactions overtake a waiting claim
-- for ever.
create function fenced.resource_lock_key(resource text) returns bigint
language sql immutable strict parallel safe
as $$ select pg_catalog.hashtextextended(resource, 4711::bigint) $$;

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

-- The advisory lock of the issuer: claims share it; who changes the issuer takes it exclusively and
-- is not overtaken by claims that come later. No resource has a space in its name.
create function fenced.lock_service_key() returns bigint
language sql immutable parallel safe
as $$ select fenced.resource_lock_key('the issuer'::text) $$;

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

-- Takes the lock of a resource, behind its open transactions. The detail of its timeout says
-- that they were waited for. No other timeout of a claim has one: behind a seal, for example, the
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
  update fenced.high_water_mark m set token = $2, holder = $3, claimed_at = clock_timestamp()
    where m.resource = $1 and m.issuer = $4 and m.token < $2;
  if found then
    return true;
  end if;
  insert into fenced.high_water_mark (resource, token, holder, issuer) values ($1, $2, $3, $4)
    on conflict do nothing;
  if found then
    return true;
  end if;
  perform from fenced.high_water_mark m
    where m.resource = $1 and m.token = $2 and m.holder = $3 and m.issuer = $4;
  return found;
end $$;

-- A claim that never waits, for fenced.acquire, whose holder is as it is kept: that one holds a
-- lock already. False: something is
-- in its way, or it would be refused, or it is the first claim of all; fenced.claim says what.
create function fenced.claim_now(resource text, token bigint, holder text, issuer text)
returns boolean
language plpgsql as $$
begin
  if not pg_try_advisory_xact_lock_shared(fenced.lock_service_key())
     or not pg_try_advisory_xact_lock(fenced.resource_lock_key($1)) then
    return false;
  end if;
  -- In a statement after the locks, so that it sees what was committed before them.
  if (select i.name from fenced.lock_service i) = $4 then
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
-- Most sessions have none. This becomes a part of what calls it, which a function with a search
-- path of its own could not; those that call it have one.
create function fenced.min_timeout(setting text, milliseconds integer) returns text
language sql stable as $$
  select case
    when milliseconds is null then pg_catalog.current_setting(setting)
    when pg_catalog.current_setting(setting) operator(pg_catalog.=) '0' then milliseconds::text
    else fenced.min_session_timeout(setting, milliseconds)
  end
$$;

-- Null leaves it as it is. Those that call it have a search path.
create function fenced.limit_lock_timeout(milliseconds integer) returns void
language plpgsql as $$
begin
  if milliseconds is not null then
    perform set_config(
      'lock_timeout', fenced.min_timeout('lock_timeout'::text, milliseconds), true);
  end if;
end $$;

-- Lets a transaction in. At READ COMMITTED the resource lock alone does it: it keeps claims out
-- while the transaction lasts, and the mark is read after it was taken, as it was committed last.
-- Where the snapshot may be older than that, the mark has to be locked: see
-- fenced.begin_fenced_by_lock.
--
-- A resource lock that nobody else waits for is taken without asking for a timeout; a claim that
-- waits is not overtaken this way.
--
-- Not inside a savepoint: rolling back to it would give up the locks.
--
-- The timeouts are local to the transaction, and never looser than the session's. Without them a
-- paused client could hold up a claim without bound. lock_timeout_ms counts for this call only;
-- statement_timeout_ms also bounds how long a client may leave a result unread.
--
-- The grants are noted for triggers in the setting fenced.open_transaction, which ends with
-- the transaction: ' account:42=34 account:43=40 '. Names have no space.
--
-- It has no search_path of its own, which costs time. Instead all names are qualified in here,
-- those of operators and types too. Parameters go by number: this text is in
-- fenced.begin_fenced_fast, too.
create function fenced.begin_fenced(
  resource text, token bigint, holder text, issuer text,
  lock_timeout_ms integer default null,
  idle_timeout_ms integer default null,
  statement_timeout_ms integer default null
) returns void
language plpgsql security definer as $$
declare
  done pg_catalog.text;
begin
  if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.=) 'read committed'
     and pg_catalog.current_setting('transaction_read_only') operator(pg_catalog.=) 'off'
     and pg_catalog.pg_try_advisory_xact_lock_shared(pg_catalog.hashtextextended($1, 4711)) then
    perform from fenced.high_water_mark m
      where m.resource operator(pg_catalog.=) $1 and m.token operator(pg_catalog.=) $2
        and m.holder operator(pg_catalog.=) fenced.kept_digest($3)
        and m.issuer operator(pg_catalog.=) $4;
    if not found then
      perform fenced.raise_refusal($1, $2, fenced.kept_digest($3), $4);
    end if;
  else
    perform fenced.begin_fenced_by_lock($1, $2, $3, $4, $5);
  end if;

  -- One expression for several settings: each statement in here costs.
  done := pg_catalog.set_config('fenced.open_transaction', pg_catalog.concat(
    pg_catalog.rtrim(pg_catalog.current_setting('fenced.open_transaction', true)),
    ' ', $1, '=', $2, ' '), true);
  if $6 is null and $7 is null then
    return;
  end if;
  if $6 is not null and $7 is not null and pg_catalog.concat(
       pg_catalog.current_setting('idle_in_transaction_session_timeout'),
       pg_catalog.current_setting('statement_timeout'),
       pg_catalog.current_setting('tcp_user_timeout')) operator(pg_catalog.=) '000' then
    done := pg_catalog.concat(
      pg_catalog.set_config('idle_in_transaction_session_timeout', $6::pg_catalog.text, true),
      pg_catalog.set_config('statement_timeout', $7::pg_catalog.text, true),
      pg_catalog.set_config('tcp_user_timeout', $7::pg_catalog.text, true));
  else
    perform fenced.limit_timeouts($6, $7);
  end if;
end $$;

-- Right at every isolation level: FOR SHARE fails (40001) if the mark is newer than the snapshot,
-- and wherever nothing can be written.
create function fenced.begin_fenced_by_lock(
  resource text, token bigint, holder text, issuer text, lock_timeout_ms integer
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  digest constant text := fenced.kept_digest(begin_fenced_by_lock.holder);
  lock_timeout_before text := current_setting('lock_timeout');
begin
  perform fenced.limit_lock_timeout(lock_timeout_ms);
  perform pg_advisory_xact_lock_shared(fenced.resource_lock_key(begin_fenced_by_lock.resource));
  perform from fenced.high_water_mark m
    where m.resource = begin_fenced_by_lock.resource and m.token = begin_fenced_by_lock.token
      and m.holder = digest and m.issuer = begin_fenced_by_lock.issuer
    for share;
  if not found then
    perform fenced.raise_refusal(begin_fenced_by_lock.resource, begin_fenced_by_lock.token,
                                 digest, begin_fenced_by_lock.issuer);
  end if;
  perform set_config('lock_timeout', lock_timeout_before, true);
end $$;

-- The timeouts of a transaction whose session has some of its own.
create function fenced.limit_timeouts(
  idle_timeout_ms integer, statement_timeout_ms integer
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform
    set_config('idle_in_transaction_session_timeout', fenced.min_timeout(
      'idle_in_transaction_session_timeout'::text, idle_timeout_ms), true),
    set_config('statement_timeout',
               fenced.min_timeout('statement_timeout'::text, statement_timeout_ms), true),
    set_config('tcp_user_timeout',
               fenced.min_timeout('tcp_user_timeout'::text, statement_timeout_ms), true);
end $$;

-- fenced.begin_fenced in the message that begins the transaction:
-- CALL fenced.begin_fenced_fast(..); BEGIN. It refuses (25001) where a transaction was open before
-- that message came.
--
-- The transaction gets a cursor with the name tx_name: CLOSE fails in any other one.
--
-- To call a procedure costs less than to select a function; and one that contains
-- fenced.begin_fenced less than one that calls it.
do $do$
declare
  body text := (select f.prosrc from pg_proc f where f.oid = 'fenced.begin_fenced'::regproc);
begin
  execute format($create$
    create procedure fenced.begin_fenced_fast(
      resource text, token bigint, holder text, issuer text,
      lock_timeout_ms integer, idle_timeout_ms integer, statement_timeout_ms integer,
      tx_name text
    )
    language plpgsql security definer as %L
  $create$, format($begin$
declare
  transaction_cursor pg_catalog.refcursor := $8;
begin
  if pg_catalog.transaction_timestamp()
     operator(pg_catalog.<>) pg_catalog.statement_timestamp() then
    raise exception using
      errcode := 'active_sql_transaction',
      message := pg_catalog.concat('in a transaction since ', pg_catalog.transaction_timestamp());
  end if;
  open transaction_cursor for select;
  %s;
end $begin$, body));
end $do$;

-- Waits until no transaction of this grant is under way, and fails as fenced.begin_fenced does:
-- after a commit that was not answered. Nothing of the grant can be committed later, but by
-- transactions that begin later. Call at READ COMMITTED.
create function fenced.settle(
  resource text, token bigint, holder text, issuer text,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  digest constant text := fenced.kept_digest(settle.holder);
begin
  perform fenced.limit_lock_timeout(lock_timeout_ms);
  -- Refused before it queues, if this is not the grant of the mark: in the queue it would hold up
  -- others.
  perform from fenced.high_water_mark m
    where m.resource = settle.resource and m.token = settle.token
      and m.holder = digest and m.issuer = settle.issuer;
  if found then
    perform pg_advisory_xact_lock(fenced.resource_lock_key(settle.resource));
    perform from fenced.high_water_mark m
      where m.resource = settle.resource and m.token = settle.token
        and m.holder = digest and m.issuer = settle.issuer
      for share; -- fails on a standby, whose resource lock nobody uses
  end if;
  if not found then
    perform fenced.raise_refusal(settle.resource, settle.token, digest, settle.issuer);
  end if;
end $$;

-- The mark of a resource; no row if it was never claimed. Without the holder.
create function fenced.high_water(resource text) returns table (token bigint, issuer text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.token, m.issuer from fenced.high_water_mark m where m.resource = high_water.resource
$$;

-- The open transactions of a resource. A prepared one has no pid.
create function fenced.open_transactions(resource text)
returns table (pid integer, virtual_transaction text)
language sql volatile set search_path = pg_catalog, pg_temp as $$
  select l.pid, l.virtualtransaction
  from pg_locks l join pg_database d on d.oid = l.database
  where d.datname = current_database() and l.locktype = 'advisory' and l.objsubid = 1
    and l.classid::bigint << 32 | l.objid::bigint
      = fenced.resource_lock_key(open_transactions.resource)
    and l.mode = 'ShareLock' and l.granted
$$;

-- Ends the sessions of older holders that a claim of this grant has waited for in vain: one that is
-- paused inside its transaction would hold it up without bound. Returns their pids.
--
-- With the rights of the caller. Sessions of another role need membership in that role, or in
-- pg_signal_backend; if there are such sessions only, it fails (55P03). Call at READ COMMITTED.
create function fenced.terminate_older(resource text, token bigint, issuer text) returns integer[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  -- Before the mark is read: so these began under that mark, or under one before it.
  candidates text[] := array(
    select s.virtual_transaction from fenced.open_transactions(terminate_older.resource) s);
  terminated integer[] := '{}';
  obstacle text;
  session record;
begin
  perform from fenced.high_water(terminate_older.resource) m
    where m.issuer = terminate_older.issuer and m.token < terminate_older.token;
  if not found then
    return terminated;
  end if;
  -- Looked up again: a session that has gone on to its next transaction is left alone.
  for session in
    select s.pid from fenced.open_transactions(terminate_older.resource) s
    where s.virtual_transaction = any (candidates)
  loop
    if session.pid is null then
      obstacle := 'a prepared transaction';
      continue;
    end if;
    begin
      if pg_terminate_backend(session.pid) then
        terminated := terminated || session.pid;
      end if;
    exception when insufficient_privilege then
      obstacle := format('a session of another role, pid %s', session.pid);
    end;
  end loop;
  if obstacle is not null and terminated = '{}' then
    raise exception using
      errcode = 'lock_not_available',
      message = format('%s has an open transaction of "%s" and cannot be ended', obstacle,
                       terminate_older.resource),
      hint = 'Let this role end sessions of that one (pg_signal_backend), end it by hand, or wait.';
  end if;
  return terminated;
end $$;

-- Who has USAGE on the schema may call these, whatever the default for functions is. The rest is
-- called by them.
revoke all on all routines in schema fenced from public;
grant execute on routine fenced.claim, fenced.begin_fenced, fenced.begin_fenced_fast, fenced.settle,
  fenced.high_water, fenced.resource_lock_key, fenced.open_transactions, fenced.terminate_older
  to public;

-- The type of an argument that says: this statement is a transaction of its own. Arguments are read
-- when the statement is bound, which is when its transaction begins, unless one is open already. In
-- one that somebody left open, what is written would be reported as stored, and be lost.
create domain fenced.autocommit as boolean
  constraint autocommit_check check (transaction_timestamp() = statement_timestamp());
grant usage on domain fenced.autocommit to public;

-- ADMINISTRATION
--
-- What only administrators do: another lock service takes over (seal), a mark is set by hand
-- (reset). Both write down who did what and why. Nobody but the owner may call these functions;
-- grant EXECUTE on them to the role of your operators, and to no application.
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

-- The other lock services of which there are marks, and how many: what seals that were not finished
-- have left.
create function fenced.marks_of_others(issuer text)
returns table (of_issuer text, marks bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.issuer, count(*) from fenced.high_water_mark m where m.issuer <> marks_of_others.issuer
  group by m.issuer order by m.issuer
$$;

-- Where things stand before a handover: the greatest mark of all, of which resource, and how many
-- marks there are of an issuer. No row if there is no mark.
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

-- PROTECTED TABLES
--
-- Tables that take no write without a fence: a net against bugs (a script, an ORM, a session of
-- psql), not against malice.
--
--   fenced.protect(table, id_column, prefix)  each row is a resource of its own: prefix || id
--   fenced.protect(table, resource)           the whole table is one resource
--   fenced.unprotect(table)                   removes what the others made
--
-- Triggers refuse INSERT, UPDATE, DELETE and TRUNCATE in a transaction without the fence of the
-- resource, which fenced.begin_fenced gives it:
--
--   FN010 the transaction has no fence       detail {"table", "required"}
--   FN011 it has the fence of another one    detail {"table", "required"}
--   FN001, FN003 as fenced.begin_fenced raises them, for a context that was forged
--
-- They run after each row and see what is really to be written, whatever other triggers have
-- changed, and on conflict do what. They check the mark themselves, so not even a forged context
-- writes after a claim. A statement that names another table, of which this one is a partition or a
-- child, cannot get past them, because triggers for rows belong to the rows.
--
-- The functions of the triggers are in a schema of their own, which every role may use, because a
-- role that writes needs no right on the schema fenced. They run with the rights of the role that
-- writes. Only the owner creates functions there: fenced.make_guard does, for every caller, from
-- names.
--
-- NOT stopped: session_replication_role = replica (superusers, logical replication), a role that
-- may disable or drop the triggers (the table's owner), a session that sets fenced.open_transaction
-- to the token of the current holder, TRUNCATE of a partition that was attached after the call
-- (call again), and a statement that matches no row.

-- Refuses unless this transaction has the fence of the resource. Names have no space, so
-- ' name=token ' can be found in ' name=token name2=token2 ' in one way only. Null is a resource
-- that nobody has.
--
-- A fenced transaction has the resource lock, and gets it again for nothing; a forged context gets
-- it here. As in fenced.begin_fenced it is enough at READ COMMITTED, and all names are qualified.
create or replace function fenced_guards.check_row_write(resource text, relation regclass)
returns void
language plpgsql security definer as $$
declare
  fences pg_catalog.text := pg_catalog.current_setting('fenced.open_transaction', true);
begin
  if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.=) 'read committed'
     and pg_catalog.pg_try_advisory_xact_lock_shared(
       pg_catalog.hashtextextended(check_row_write.resource, 4711)) then
    perform from fenced.high_water_mark m
      where m.resource operator(pg_catalog.=) check_row_write.resource
        and pg_catalog.strpos(fences, pg_catalog.concat(' ', m.resource, '=', m.token, ' '))
            operator(pg_catalog.>) 0;
  else
    perform from fenced.high_water_mark m
      where m.resource operator(pg_catalog.=) check_row_write.resource
        and pg_catalog.strpos(fences, pg_catalog.concat(' ', m.resource, '=', m.token, ' '))
            operator(pg_catalog.>) 0
      for share;
  end if;
  if not found then
    perform fenced.raise_unfenced_write(check_row_write.resource, check_row_write.relation,
                                        coalesce(fences, ''::pg_catalog.text));
  end if;
end $$;

-- Raises the refusal that fits the fences of the transaction.
create function fenced.raise_unfenced_write(
  resource text, relation regclass, fences text
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  presented bigint;
  high_water bigint;
begin
  select substr(e, length(raise_unfenced_write.resource) + 2) into presented
    from unnest(string_to_array(raise_unfenced_write.fences, ' ')) e
    where left(e, length(raise_unfenced_write.resource) + 1) = raise_unfenced_write.resource || '='
      and substr(e, length(raise_unfenced_write.resource) + 2) ~ '^[0-9]{1,15}$';
  if not found then
    raise exception using
      errcode = case btrim(raise_unfenced_write.fences) when '' then 'FN010' else 'FN011' end,
      message = format('%s to %s, which needs the fence of %s',
                       case btrim(raise_unfenced_write.fences)
                         when '' then 'unfenced write' else 'write under another fence' end,
                       relation,
                       case when raise_unfenced_write.resource is null then 'the whole table'
                         else format('"%s"', raise_unfenced_write.resource) end),
      detail = json_build_object('table', relation::text,
                                 'required', raise_unfenced_write.resource),
      hint = 'Call fenced.begin_fenced for the resource first in the transaction.';
  end if;
  select m.token into high_water from fenced.high_water_mark m
    where m.resource = raise_unfenced_write.resource;
  if high_water > presented then
    raise exception using
      errcode = 'FN001',
      message = format('stale fencing token %s for "%s": the high-water mark is %s',
                       presented, raise_unfenced_write.resource, high_water),
      detail = json_build_object('resource', raise_unfenced_write.resource, 'presented', presented,
                                 'high_water', high_water),
      hint = 'A newer holder has claimed the resource. Acquire the lock afresh.';
  end if;
  raise exception using
    errcode = 'FN003',
    message = format('fencing token %s for "%s" has not been claimed',
                     presented, raise_unfenced_write.resource),
    detail = json_build_object('resource', raise_unfenced_write.resource, 'presented', presented),
    hint = 'Call fenced.begin_fenced for the resource first in the transaction.';
end $$;

-- Protects a table each row of which is a resource: 'account:42' is the one whose id is 42. The
-- text of the id counts, as in id::text. An UPDATE that changes the id needs both.
--
-- Calling again changes nothing; with other arguments it replaces.
create function fenced.protect(relation regclass, id_column name, prefix text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from pg_attribute a
                 where a.attrelid = relation and a.attname = id_column and a.attnum > 0
                   and not a.attisdropped) then
    raise exception using
      errcode = 'undefined_column',
      message = format('cannot protect %s: it has no column %I', relation, id_column);
  end if;
  perform fenced.install_guard(relation, fenced.make_guard(relation, id_column, prefix));
end $$;

-- Protects a table that is one resource, whatever row is written.
--
-- A caller that forgets the prefix has named a column, and would replace the protection of each
-- row.
create function fenced.protect(relation regclass, resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from pg_attribute a
             where a.attrelid = relation and a.attname = resource and a.attnum > 0
               and not a.attisdropped) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('cannot protect %s as the resource "%s": it has a column of that name',
                       relation, resource),
      hint = 'For a resource per row: fenced.protect(table, id_column, prefix).';
  end if;
  perform fenced.install_guard(relation, fenced.make_guard(relation, null::name, resource));
end $$;

-- Removes the protection of a table. Of one that is not protected it removes nothing.
create function fenced.unprotect(relation regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform fenced.install_guard(relation, null::text);
end $$;

-- The name of the function of the triggers, which is made if it is not there: for tables whose rows
-- are resources, the prefix and the id; without a column, for tables that are this resource.
--
-- It is generated, because looking a column up by its name costs more than the check itself. It
-- assigns what it calls, which costs less than to perform it.
--
-- The text of an id must depend on no setting of a session: otherwise one row would be two
-- resources. Hence these types, and domains of them. After a change of the type the guard refuses.
-- It compares names of types, because reading a type by its name needs USAGE on its schema.
create function fenced.make_guard(relation regclass, id_column name, prefix text) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  is_whole constant boolean := id_column is null;
  id_type oid := (select a.atttypid from pg_attribute a
                    where a.attrelid = relation and a.attname = id_column);
  base_type oid := id_type;
  body text;
  guard text;
begin
  if prefix is null or prefix !~ '^[]-~!#-[]*$' or is_whole and prefix = ''
     or length(prefix) + (not is_whole)::integer > 256 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('cannot protect %s: "%s" %s of a resource', relation, left(prefix, 300),
                       case when is_whole then 'is no name' else 'begins no name' end),
      hint = 'A name has up to 256 visible ASCII characters, but no quotation mark or backslash.';
  end if;
  while exists (select from pg_type t where t.oid = base_type and t.typtype = 'd') loop
    base_type := (select t.typbasetype from pg_type t where t.oid = base_type);
  end loop;
  if base_type <> all ('{int2,int4,int8,numeric,text,varchar,bpchar,uuid}'::regtype[]::oid[]) then
    raise exception using
      errcode = 'wrong_object_type',
      message = format('cannot protect %s: the text of its column %I, of type %s, may depend on '
                       'settings of a session; an id is an integer, a numeric, a text or a uuid',
                       relation, id_column, format_type(id_type, null)),
      hint = 'Add a generated column of one of these types, and protect by that.';
  end if;
  body := format(case when is_whole then $body$
declare
  done text;
begin
  done := fenced_guards.check_row_write(%2$L::text, tg_relid::regclass);
  return null;
end $body$ else $body$
declare
  done text;
begin
  if tg_op = 'TRUNCATE' then
    done := fenced_guards.check_row_write(null::text, tg_relid::regclass);
    return null;
  end if;
  if pg_typeof(new.%1$I)::text <> %3$L::text or pg_typeof(old.%1$I)::text <> %3$L::text then
    raise exception using
      errcode = 'FN011',
      message = format('the column %%I of %%s has another type than when it was protected: '
                       'protect it anew', %1$L, tg_relid::regclass),
      detail = json_build_object('table', tg_relid::regclass::text, 'required', null);
  end if;
  if tg_op = 'INSERT' then
    done := fenced_guards.check_row_write(%2$L || new.%1$I::text, tg_relid::regclass);
  else
    done := fenced_guards.check_row_write(%2$L || old.%1$I::text, tg_relid::regclass);
    if tg_op = 'UPDATE' then
      if new.%1$I::text is distinct from old.%1$I::text then
        done := fenced_guards.check_row_write(%2$L || new.%1$I::text, tg_relid::regclass);
      end if;
    end if;
  end if;
  return null;
end $body$ end, id_column, prefix, format_type(id_type, null));
  guard := 'guard_' || md5(body);
  perform pg_advisory_xact_lock(fenced.resource_lock_key('the guards'::text));
  if to_regproc('fenced_guards.' || guard) is null then
    execute format('create function fenced_guards.%I() returns trigger language plpgsql
                    set search_path = pg_catalog, pg_temp as %L', guard, body);
    execute format('grant execute on function fenced_guards.%I() to public', guard);
  end if;
  return guard;
end $$;

-- Drops the functions that no trigger calls any more.
create function fenced.drop_unused_guards() returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  guard regprocedure;
begin
  perform pg_advisory_xact_lock(fenced.resource_lock_key('the guards'::text));
  for guard in
    select f.oid from pg_proc f
    where f.pronamespace = 'fenced_guards'::regnamespace and f.proname ~ '^guard_[0-9a-f]{32}$'
      and not exists (select from pg_trigger t where t.tgfoid = f.oid)
  loop
    execute format('drop function %s', guard);
  end loop;
end $$;

-- Has the triggers of a table call this function, or, if it is null, drops them. With the rights of
-- its caller, who owns the table.
--
-- Triggers for each row are cloned to all partitions, also to later ones. That for TRUNCATE fires
-- for the table that is emptied: hence one on each partition. All of it may be there already, and
-- fire: O and A do, in sessions of applications. The triggers of a partition can be switched off
-- without those of its table.
--
-- One at a time, which fenced.make_guard has seen to: two that both found a table unprotected would
-- both create the triggers.
create function fenced.install_guard(relation regclass, guard text) returns void
language plpgsql set search_path = pg_catalog, pg_temp set client_min_messages = warning as $$
declare
  kind "char" := (select c.relkind from pg_class c where c.oid = relation);
  members regclass[] := array(
    select p.relid from pg_partition_tree(relation) p union select relation);
  member regclass;
begin
  if guard is not null and kind not in ('r', 'p') then
    raise exception using
      errcode = 'wrong_object_type',
      message = format('cannot protect %s: it is not a table', relation);
  end if;
  if not exists (
    select from unnest(members) m, unnest(array['fenced_guard', 'fenced_guard_truncate']) name
    where not exists (
      select from pg_trigger t join pg_proc f on f.oid = t.tgfoid
      where t.tgrelid = m and t.tgname = name and t.tgenabled in ('O', 'A')
        and f.pronamespace = 'fenced_guards'::regnamespace and f.proname = guard))
  then
    return;
  end if;
  execute format('drop trigger if exists fenced_guard on %s', relation);
  foreach member in array members loop
    execute format('drop trigger if exists fenced_guard_truncate on %s', member);
  end loop;
  if guard is not null then
    execute format('create trigger fenced_guard after insert or update or delete on %s
                    for each row execute function fenced_guards.%I()', relation, guard);
    foreach member in array members loop
      execute format('create trigger fenced_guard_truncate before truncate on %s
                      for each statement execute function fenced_guards.%I()', member, guard);
    end loop;
  end if;
  perform fenced.drop_unused_guards();
end $$;

-- A role that protects tables owns them, and needs the right to call these. A role that writes
-- needs no right.
revoke all on function fenced.raise_unfenced_write, fenced.make_guard, fenced.drop_unused_guards,
  fenced.install_guard, fenced.unprotect, fenced.protect(regclass, name, text),
  fenced.protect(regclass, text) from public;
revoke all on all routines in schema fenced_guards from public;
grant usage on schema fenced_guards to public;
grant execute on function fenced_guards.check_row_write to public;

-- JOBS
--
-- Jobs that run once per slot: a slot is a time of a schedule, or any text. A job is the resource
-- 'job:NAME', for all of its slots. Who runs one holds its lease, has claimed the token, and works
-- in transactions that fenced.begin_fenced has let in:
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
-- Those that write refuse a transaction without the fence of 'job:NAME' (FN010, FN011). So nobody
-- who was overtaken can mark, save or fail anything, whatever the language of the program.

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
  -- One look for both: a slot that becomes due between two would be marked, and nobody told.
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

-- LEASES
--
-- This database as lock service: leases with fencing tokens, and a fair queue.
--
--   fenced.acquire           asks for a lease, and asks again while it says 'waiting'
--   fenced.acquire_together   several leases at once, or none
--   fenced.renew             renews leases
--   fenced.release           ends a lease
--   fenced.cancel            ends one attempt to acquire, whatever became of it
--   fenced.look              says to waiters whose turn it is
--   fenced.inspect, fenced.list, fenced.force_release   for operators
--
-- Each call is a transaction of its own, at READ COMMITTED: so no lock is held over a round trip,
-- and nothing here depends on the session, which a pooler may change with each transaction. The
-- only clock is that of the database. What is normal, such as that somebody else holds the lease,
-- is an outcome and not an exception.
--
-- A holder is a text that one acquisition alone knows, an attempt a text for each try of it. A
-- request that is sent again with both finds itself: it gets the same lease, and never a second
-- one. The tables keep the digest of a holder; inner functions get it as it is kept. Notices and
-- lists show fingerprints, the first 16 hex digits of the digest.
--
-- Locks are taken in this order: the mutex of the resource, always first; then its row; those of a
-- claim last, and only if they are free. A statement
-- that updates a free row without the mutex would keep that row locked when it has lost the race,
-- and then wait for the mutex: a deadlock. Renewals take no mutex, and skip what is locked.
--
-- What only other functions call has no search_path of its own: it runs with theirs, and becomes
-- a part of their statements.
--
-- What has to survive a power cut is flushed (a lease that is taken back is held twice). A release
-- and the queue need not be: a lease whose release is lost ends by its ttl, and those who wait put
-- the queue up again.

create domain fenced.attempt as text
  constraint attempt_has_1_to_256_bytes
    check (value is not null and octet_length(value) between 1 and 256);
create domain fenced.ttl_ms as bigint
  constraint ttl_is_10_ms_to_24_hours check (value is not null and value between 10 and 86400000);
create domain fenced.wait_ms as bigint
  constraint wait_is_0_to_100_years check (value between 0 and 3155760000000); -- null: no bound
create domain fenced.channel as text
  constraint channel_has_at_most_63_visible_ascii_characters
    check (value is not null and value ~ '^[!-~]{0,63}$'); -- as pg_notify asks; '': none
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
  resource   fenced.resource_name primary key,
  token      bigint not null,                 -- of this lease, or of the last one
  last_token bigint not null,                 -- the greatest that was ever taken
  holder     text not null default '',        -- as it is kept; '': free
  expires_at timestamptz not null default '-infinity',
  attempts   text[] not null default '{}',    -- that share this lease
  metadata   fenced.metadata
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
create function fenced.clock_token() returns bigint
language sql volatile
as $$ select (extract(epoch from clock_timestamp()) * 100000)::bigint $$;

create function fenced.this_minute() returns integer
language sql volatile
as $$ select (extract(epoch from clock_timestamp()) / 60)::integer $$;

-- What others may see of a kept digest.
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

-- The mutex of a resource in the lock service, until the end of the transaction. It is held for
-- longer only by a commit that hangs, behind which sessions would pile up whose clients have gone.
create function fenced.lock_lease(resource text) returns void
language plpgsql as $$
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

-- Whether a waiter is one. A sign of life that is to come was given before the clock was set back:
-- who lives gives another one within a second.
create function fenced.is_alive(wait_until timestamptz, seen_at timestamptz) returns boolean
language sql volatile as $$
  select wait_until > clock_timestamp()
    and clock_timestamp() - seen_at between interval '-3 s' and interval '3 s'
$$;

-- Whose turn it is: the first in the queue that is alive. Those before it, who are not, are
-- dropped. Under the mutex.
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

-- Tells the first in the queue that the resource is free. Under the mutex, in a transaction whose
-- commit is not flushed: NOTIFY holds a lock of the whole server until the commit is over.
create function fenced.wake(resource text) returns void
language plpgsql as $$
declare
  waiter fenced.waiter := fenced.first_waiter($1);
begin
  if waiter.channel <> '' then
    perform pg_notify(waiter.channel, concat($1, ' ', fenced.fingerprint(waiter.holder)));
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
  granted constant bigint := greatest(free.last_token + 1, fenced.clock_token(), at_least);
begin
  if granted > 999999999999999 then
    return null;
  end if;
  insert into fenced.lease
      (resource, token, last_token, holder, expires_at, attempts, metadata)
    values ($1, granted, granted, $3, clock_timestamp() + $5 * interval '1 ms', array[$4], $7)
    on conflict on constraint lease_pkey do update
      set token = granted, last_token = granted, holder = $3, expires_at = excluded.expires_at,
          attempts = excluded.attempts, metadata = $7;
  return granted;
end $$;

-- A floor may be ahead of the clock by a day: clocks differ, but not by more. One that is higher
-- must be a mistake, and would use the tokens up.
create function fenced.greatest_floor() returns bigint
language sql volatile
as $$ select least(fenced.clock_token() + 86400 * 100000::bigint, 999999999999999) $$;

-- Outcomes:
--   granted      the lease is yours: token, left_ms
--   held         by somebody else, for left_ms at most if it is not renewed
--   waiting      you are in the queue: call again with the same arguments when you are notified on
--                your channel, when left_ms are over, and at least every second; who is silent for
--                3 s, or does not take the lease for 3 s when it is its turn, is passed over
--   released     this acquisition or attempt has ended, or its lease ran out: begin a new one
--   full         as many wait as max_waiters allows, or 1000 attempts share the lease
--   late         not_after has passed: this is an old copy of the request, or your clock is wrong
--   implausible  at_least is too high; token is the greatest that can be right
--   exhausted    there are no tokens left
--
-- A wait of 0 ms looks once and leaves the queue; null waits without bound. With a channel you are
-- notified, with the payload 'resource fingerprint'. at_least is a token that the store asks for.
-- The token is the greatest of: the last one plus one, the clock in 10 us, at_least.
--
-- claim_for is the name under which this database takes tokens as those of its lock service. With
-- it the grant is claimed in the same step, if nothing is in the way: claimed. Otherwise call
-- fenced.claim, which waits.
create function fenced.acquire(
  resource text, holder text, attempt text, ttl_ms bigint,
  wait_ms bigint default 0, channel text default '', at_least bigint default 0,
  metadata text default null, max_waiters integer default null,
  not_after timestamptz default null, claim_for text default null,
  out outcome text, out token bigint, out left_ms bigint, out claimed boolean
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- The domains refuse what is out of bounds, before anything is locked.
  resource_ok constant fenced.resource_name := $1;
  digest constant text := fenced.kept_digest($2);
  attempt_ok constant fenced.attempt := $3;
  ttl constant interval := $4::fenced.ttl_ms * interval '1 ms';
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

  -- The common case in one statement: it is free, nobody waits, and this acquisition has not ended.
  update fenced.lease l
    set token = greatest(l.last_token + 1, now.token, floor),
        last_token = greatest(l.last_token + 1, now.token, floor),
        holder = digest, expires_at = clock_timestamp() + ttl, attempts = array[$3],
        metadata = note
    from (select fenced.clock_token() as token offset 0) now
    where l.resource = $1 and l.holder = '' and l.last_token < 999999999999999
      and not exists (select from fenced.waiter w where w.resource = $1)
      and not fenced.has_ended($1, digest, $3)
    returning l.token into token;
  if found then
    outcome := 'granted';
    left_ms := $4;
    if claim_for is not null then
      claimed := fenced.claim_now($1, token, digest, claim_for);
    end if;
    return;
  end if;

  lease := fenced.lease_now($1);
  if fenced.has_ended($1, digest, $3) then
    delete from fenced.waiter w where w.resource = $1 and w.holder = digest and w.attempt = $3;
    outcome := 'released';
    return;
  end if;
  first := fenced.first_waiter($1);

  if lease.holder = digest then
    -- Sent again, or another attempt of the same acquisition.
    if $3 <> all (lease.attempts) then
      if cardinality(lease.attempts) >= 1000 then
        outcome := 'full';
        return;
      end if;
      update fenced.lease l set attempts = l.attempts || $3 where l.resource = $1;
    end if;
    token := lease.token;
    left_ms := fenced.left_ms(lease.expires_at);
  elsif coalesce(lease.holder, '') = '' and (first.holder is null or first.holder = digest) then
    token := fenced.grant_lease($1, lease, digest, $3, $4, $7, $8);
    left_ms := $4;
    if token is null then
      outcome := 'exhausted';
      return;
    end if;
  end if;
  if token is not null then
    if first.holder is not null then
      delete from fenced.waiter w where w.resource = $1 and w.holder = digest and w.attempt = $3;
    end if;
    outcome := 'granted';
    if claim_for is not null then
      claimed := fenced.claim_now($1, token, digest, claim_for);
    end if;
    return;
  end if;

  -- A resource that is free here is kept for the first in the queue.
  left_ms := greatest(1, fenced.left_ms(lease.expires_at));
  perform set_config('synchronous_commit', 'off', true);
  if wait = 0 then
    delete from fenced.waiter w where w.resource = $1 and w.holder = digest and w.attempt = $3;
    outcome := 'held';
    return;
  end if;
  outcome := fenced.enqueue($1, digest, $3, $5, $6, $9);
end $$;

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
  return 'waiting';
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
  resources_ok constant fenced.resource_name[] := $1;
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
             where l.resource = any ($1) and l.last_token >= 999999999999999) then
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

-- Refuses lists that are empty, longer than this, or not of one length.
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

-- Renews leases, 1 to 1000, each to its full ttl from now and never to less than it has. One row
-- for each, with its place in the arrays:
--   renewed
--   not_holder  no lease of this holder with this token lives; nothing changed
--   busy        somebody is deciding about the resource: ask again
-- What is locked is skipped, so that one commit that hangs holds up no other lease. A standby that
-- is promoted may lack the last ones.
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
  -- Flushed, because its holder relies on it. But not on a standby: one that is gone would end all
  -- leases.
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
-- The tombstone may be left out if no copy of a request of this acquisition can still arrive.
create function fenced.release(
  resource text, token bigint, holder text, tombstone boolean default true, out outcome text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  digest constant text := fenced.kept_digest($3);
begin
  perform set_config('synchronous_commit', 'off', true);
  perform fenced.lock_lease($1);
  update fenced.lease l set holder = '', expires_at = '-infinity', attempts = '{}', metadata = null
    where l.resource = $1 and l.token = $2 and l.holder = digest
      and l.expires_at > clock_timestamp();
  if found then
    if tombstone then
      perform fenced.bury($1, digest, ''::text, $2);
    end if;
    if exists (select from fenced.waiter w where w.resource = $1) then
      perform fenced.wake($1);
    end if;
    outcome := 'released';
  elsif fenced.was_released($1, $2, digest, ''::text) then
    outcome := 'released';
  else
    outcome := 'not_holder';
  end if;
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
  resource_ok constant fenced.resource_name := $1;
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

-- Ends the lease with this token, whoever holds it. To its holder this looks as if it had run out.
-- Outcomes: ended, with a token that belongs to nobody and lies between that lease and the next
-- (the same one if it is sent again); not_held; exhausted.
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
  if lease.last_token = 999999999999999 then
    outcome := 'exhausted';
    return;
  end if;
  update fenced.lease l
    set last_token = l.last_token + 1, holder = '', expires_at = '-infinity', attempts = '{}',
        metadata = null
    where l.resource = $1 returning l.last_token into revocation;
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
    select m.resource, fenced.fingerprint(m.holder),
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

-- What this interface is called, for clients that were written for another one.
create function fenced.lock_service_version() returns integer
language sql immutable as $$ select 2 $$;

revoke all on function fenced.clock_token, fenced.this_minute, fenced.left_ms, fenced.lock_lease,
  fenced.is_alive, fenced.flush_commit, fenced.has_ended, fenced.was_released, fenced.bury,
  fenced.lease_now, fenced.first_waiter, fenced.wake, fenced.grant_lease, fenced.greatest_floor,
  fenced.enqueue, fenced.without_attempt, fenced.check_lists, fenced.fingerprint,
  fenced.force_release from public;
grant execute on function fenced.acquire, fenced.acquire_together, fenced.renew, fenced.release,
  fenced.release_hold, fenced.cancel, fenced.look, fenced.leases, fenced.forget_tombstones,
  fenced.lock_service_version to public;

-- THE MIGRATIONS TABLE
--
-- Which migrations have been applied: the migrations table can be read by every role with USAGE on
-- this schema. A role that may create nothing can find out whether the schema is the one that it
-- needs.
grant select on fenced._migrations to public;
