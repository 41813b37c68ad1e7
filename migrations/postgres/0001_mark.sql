-- The store rule for PostgreSQL 12 or newer: one high-water mark per protected resource.
--
--   fenced.claim   raises a mark: once per grant, in a transaction of its own, before any read.
--   fenced.enter   lets a transaction in if its grant is the one that the mark shows. First thing
--                  in every transaction that writes; what it locks is kept until that one ends.
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
-- A holder is an opaque text that one acquisition alone knows. Palisade stores a digest of its
-- secret nonce here, so neither these tables nor the server's log can impersonate a holder. No
-- message and no detail shows one.
--
-- Rights: what reads or writes these tables runs with the rights of its owner, the role that
-- migrates. Its callers need USAGE on this schema and no right on any table, so they cannot touch
-- a mark but by the rule. In there current_user is the owner; who has logged in is session_user.
--
-- Functions find nothing but the catalog and what is qualified: whoever may create objects in a
-- schema of the caller's search_path could otherwise put their own function between, and act as
-- the owner. A search_path of their own sees to that, but costs a microsecond per call: what every
-- transaction goes through has none, and is qualified throughout.

-- Names are what the clients can read: visible ASCII without quote and backslash; of issuers,
-- letters, digits and -._:

create table fenced.issuer (
  only_row boolean primary key default true check (only_row),
  name     text collate "C" not null check (name ~ '^[A-Za-z0-9._:-]{1,64}$')
);
comment on table fenced.issuer is
  'The one lock service whose tokens are taken. The first claim sets it.';

create table fenced.mark (
  resource   text collate "C" primary key
             check (resource ~ '^[]-~!#-[]+$' and length(resource) <= 256),
  token      bigint not null check (token between 1 and 999999999999999),
  holder     text not null check (holder <> ''),
  issuer     text collate "C" not null check (issuer ~ '^[A-Za-z0-9._:-]{1,64}$'),
  claimed_at timestamptz not null default clock_timestamp()
);
comment on table fenced.mark is
  'The greatest token claimed per resource, and by whom. It never falls; rows are never deleted.';

-- The advisory lock of a resource: a claim takes it exclusively, transactions share it. Requests
-- queue here in their order. FOR SHARE alone would let new transactions overtake a waiting claim
-- for ever.
create function fenced.turnstile(resource text) returns bigint
language sql immutable strict parallel safe
as $$ select pg_catalog.hashtextextended(resource, 4711::bigint) $$;

-- Raises the refusal that fits the mark as it is now.
create function fenced.refuse(resource text, token bigint, holder text, issuer text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  mark fenced.mark;
begin
  select * into mark from fenced.mark m where m.resource = refuse.resource;
  if mark.issuer <> refuse.issuer then
    perform fenced.refuse_issuer(refuse.resource, refuse.issuer, mark.issuer);
  elsif mark.token > refuse.token then
    raise exception using
      errcode = 'FN001',
      message = format('stale fencing token %s for "%s": the high-water mark is %s',
                       refuse.token, refuse.resource, mark.token),
      detail = json_build_object('resource', refuse.resource, 'presented', refuse.token,
                                 'high_water', mark.token),
      hint = 'A newer holder has claimed the resource. Acquire the lock afresh.';
  elsif mark.token = refuse.token and mark.holder <> refuse.holder then
    raise exception using
      errcode = 'FN002',
      message = format('fencing token %s for "%s" was claimed by another holder',
                       refuse.token, refuse.resource),
      detail = json_build_object('resource', refuse.resource, 'presented', refuse.token),
      hint = 'The lock service issued the token twice. Acquire the lock afresh.';
  elsif mark.token = refuse.token then
    raise exception using
      errcode = 'serialization_failure',
      message = format('the mark of "%s" moved during the check', refuse.resource);
  else
    raise exception using
      errcode = 'FN003',
      message = format('fencing token %s for "%s" has not been claimed',
                       refuse.token, refuse.resource),
      detail = json_build_object('resource', refuse.resource, 'presented', refuse.token),
      hint = 'Call fenced.claim once after acquiring the lock.';
  end if;
end $$;

create function fenced.refuse_issuer(resource text, presented text, current text) returns void
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
create function fenced.issuer_turnstile() returns bigint
language sql immutable parallel safe
as $$ select fenced.turnstile('the issuer') $$;

-- Keeps the issuer as it is while a claim is under way. The row is locked, too: where the snapshot
-- may be older than the wait, that fails.
create function fenced.check_issuer(resource text, issuer text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  current text;
begin
  perform pg_advisory_xact_lock_shared(fenced.issuer_turnstile());
  select i.name into current from fenced.issuer i for share;
  if not found then
    -- Two first claims at once: the slower one waits here for the other and then reads its name.
    insert into fenced.issuer (name) values (check_issuer.issuer) on conflict do nothing;
    select i.name into current from fenced.issuer i for share;
  end if;
  if current <> check_issuer.issuer then
    perform fenced.refuse_issuer(check_issuer.resource, check_issuer.issuer, current);
  end if;
end $$;

-- Takes the turnstile of a resource, behind those who have entered. The detail of its timeout says
-- that they were waited for. No other timeout of a claim has one: behind a seal, for example, the
-- claim has waited for the issuer alone.
create function fenced.wait_for_entrants(resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock(fenced.turnstile(wait_for_entrants.resource));
exception when lock_not_available then
  raise exception using
    errcode = 'lock_not_available',
    message = format('transactions that have entered "%s" did not end within the lock timeout',
                     wait_for_entrants.resource),
    detail = json_build_object('resource', wait_for_entrants.resource);
end $$;

-- Call at READ COMMITTED. Calling again with the same grant changes nothing, but waits until the
-- transactions of all holders up to now have ended.
create function fenced.claim(
  resource text, token bigint, holder text, issuer text,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  mark fenced.mark;
begin
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', fenced.tighter('lock_timeout', lock_timeout_ms), true);
  end if;
  -- A mark that a power cut takes back lets a stale holder in again.
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  perform fenced.check_issuer(claim.resource, claim.issuer);

  -- A claim that cannot win is refused before it queues: in the queue it would hold up others.
  select * into mark from fenced.mark m where m.resource = claim.resource;
  if mark.issuer <> claim.issuer or mark.token > claim.token
     or (mark.token = claim.token and mark.holder <> claim.holder) then
    perform fenced.refuse(claim.resource, claim.token, claim.holder, claim.issuer);
  end if;

  if not pg_try_advisory_xact_lock(fenced.turnstile(claim.resource)) then
    perform fenced.wait_for_entrants(claim.resource);
  end if;
  insert into fenced.mark as m (resource, token, holder, issuer)
    values (claim.resource, claim.token, claim.holder, claim.issuer)
    on conflict on constraint mark_pkey do update
      set token = excluded.token, holder = excluded.holder, claimed_at = excluded.claimed_at
      where m.issuer = excluded.issuer and m.token < excluded.token;
  if not found then
    perform from fenced.mark m
      where m.resource = claim.resource and m.token = claim.token
        and m.holder = claim.holder and m.issuer = claim.issuer;
    if not found then
      perform fenced.refuse(claim.resource, claim.token, claim.holder, claim.issuer);
    end if;
  end if;
end $$;

create function fenced.tighter_than_session(setting text, milliseconds integer) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  session_value text := current_setting(setting);
  session_milliseconds numeric := extract(epoch from session_value::interval) * 1000;
begin
  if session_milliseconds between 1 and milliseconds then
    return session_value;
  end if;
  return milliseconds::text;
end $$;

-- A timeout of the session, or this one if it is tighter. 0 is without bound, null is not given.
--
-- Most sessions have none. This becomes a part of what calls it, which a function with a search
-- path of its own could not; those that call it have one.
create function fenced.tighter(setting text, milliseconds integer) returns text
language sql stable as $$
  select case
    when milliseconds is null then pg_catalog.current_setting(setting)
    when pg_catalog.current_setting(setting) operator(pg_catalog.=) '0' then milliseconds::text
    else fenced.tighter_than_session(setting, milliseconds)
  end
$$;

-- Lets a transaction in. At READ COMMITTED the turnstile alone does it: it keeps claims out while
-- the transaction lasts, and the mark is read after it was taken, as it was committed last. Where
-- the snapshot may be older than that, the mark has to be locked: see fenced.enter_by_lock.
--
-- A turnstile that nobody else waits for is taken without asking for a timeout; a claim that waits
-- is not overtaken this way.
--
-- Not inside a savepoint: rolling back to it would give up the locks.
--
-- The timeouts are local to the transaction, and never looser than the session's. Without them a
-- paused client could hold up a claim without bound. lock_timeout_ms counts for entering only;
-- statement_timeout_ms also bounds how long a client may leave a result unread.
--
-- What was entered is noted for triggers in the setting fenced.entered, which ends with the
-- transaction: ' account:42=34 account:43=40 '. Names have no space.
--
-- It has no search_path of its own, which costs time. Instead all names are qualified in here,
-- those of operators and types too. Parameters go by number: this text is in fenced.enter_new, too.
create function fenced.enter(
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
    perform from fenced.mark m
      where m.resource operator(pg_catalog.=) $1 and m.token operator(pg_catalog.=) $2
        and m.holder operator(pg_catalog.=) $3 and m.issuer operator(pg_catalog.=) $4;
    if not found then
      perform fenced.refuse($1, $2, $3, $4);
    end if;
  else
    perform fenced.enter_by_lock($1, $2, $3, $4, $5);
  end if;

  -- One expression for several settings: each statement in here costs.
  done := pg_catalog.set_config('fenced.entered', pg_catalog.concat(
    pg_catalog.rtrim(pg_catalog.current_setting('fenced.entered', true)),
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
    perform fenced.tighten($6, $7);
  end if;
end $$;

-- Right at every isolation level: FOR SHARE fails (40001) if the mark is newer than the snapshot,
-- and wherever nothing can be written.
create function fenced.enter_by_lock(
  resource text, token bigint, holder text, issuer text, lock_timeout_ms integer
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  lock_timeout_before text := current_setting('lock_timeout');
begin
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', fenced.tighter('lock_timeout', lock_timeout_ms), true);
  end if;
  perform pg_advisory_xact_lock_shared(fenced.turnstile(enter_by_lock.resource));
  perform from fenced.mark m
    where m.resource = enter_by_lock.resource and m.token = enter_by_lock.token
      and m.holder = enter_by_lock.holder and m.issuer = enter_by_lock.issuer
    for share;
  if not found then
    perform fenced.refuse(enter_by_lock.resource, enter_by_lock.token, enter_by_lock.holder,
                          enter_by_lock.issuer);
  end if;
  perform set_config('lock_timeout', lock_timeout_before, true);
end $$;

-- The timeouts of a transaction whose session has some of its own.
create function fenced.tighten(idle_timeout_ms integer, statement_timeout_ms integer) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform
    set_config('idle_in_transaction_session_timeout',
               fenced.tighter('idle_in_transaction_session_timeout', idle_timeout_ms), true),
    set_config('statement_timeout',
               fenced.tighter('statement_timeout', statement_timeout_ms), true),
    set_config('tcp_user_timeout',
               fenced.tighter('tcp_user_timeout', statement_timeout_ms), true);
end $$;

-- Enters in the message that begins the transaction: CALL fenced.enter_new(..); BEGIN. It refuses
-- (25001) where a transaction was open before that message came.
--
-- The transaction gets a cursor with the name of the entry: CLOSE fails in any other one.
--
-- To call a procedure costs less than to select a function; and one that contains fenced.enter less
-- than one that calls it.
do $do$
declare
  enter text := (select f.prosrc from pg_proc f where f.oid = 'fenced.enter'::regproc);
begin
  execute format($create$
    create procedure fenced.enter_new(
      resource text, token bigint, holder text, issuer text,
      lock_timeout_ms integer, idle_timeout_ms integer, statement_timeout_ms integer,
      entry text
    )
    language plpgsql security definer as %L
  $create$, format($begin$
declare
  transaction_of_entry pg_catalog.refcursor := $8;
begin
  if pg_catalog.transaction_timestamp()
     operator(pg_catalog.<>) pg_catalog.statement_timestamp() then
    raise exception using
      errcode := 'active_sql_transaction',
      message := pg_catalog.concat('in a transaction since ', pg_catalog.transaction_timestamp());
  end if;
  open transaction_of_entry for select;
  %s;
end $begin$, enter));
end $do$;

-- Waits until no transaction of this grant is under way, and fails as fenced.enter does: after a
-- commit that was not answered. Nothing of the grant can be committed later, but by transactions
-- that begin later. Call at READ COMMITTED.
create function fenced.settle(
  resource text, token bigint, holder text, issuer text,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', fenced.tighter('lock_timeout', lock_timeout_ms), true);
  end if;
  perform pg_advisory_xact_lock(fenced.turnstile(settle.resource));
  perform from fenced.mark m
    where m.resource = settle.resource and m.token = settle.token
      and m.holder = settle.holder and m.issuer = settle.issuer
    for share; -- fails on a standby, whose turnstile nobody uses
  if not found then
    perform fenced.refuse(settle.resource, settle.token, settle.holder, settle.issuer);
  end if;
end $$;

-- The mark of a resource; no row if it was never claimed. Without the holder, which is what lets
-- its bearer in.
create function fenced.high_water(resource text) returns table (token bigint, issuer text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select m.token, m.issuer from fenced.mark m where m.resource = high_water.resource
$$;

-- The transactions that have entered a resource. A prepared one has no pid.
create function fenced.sharers(resource text)
returns table (pid integer, virtual_transaction text)
language sql volatile set search_path = pg_catalog, pg_temp as $$
  select l.pid, l.virtualtransaction
  from pg_locks l join pg_database d on d.oid = l.database
  where d.datname = current_database() and l.locktype = 'advisory' and l.objsubid = 1
    and l.classid::bigint << 32 | l.objid::bigint = fenced.turnstile(sharers.resource)
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
  -- Before the mark is read: so these have entered under that mark, or under one before it.
  candidates text[] := array(
    select s.virtual_transaction from fenced.sharers(terminate_older.resource) s);
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
    select s.pid from fenced.sharers(terminate_older.resource) s
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
      message = format('%s has entered "%s" and cannot be ended', obstacle,
                       terminate_older.resource),
      hint = 'Let this role end sessions of that one (pg_signal_backend), end it by hand, or wait.';
  end if;
  return terminated;
end $$;

-- Who has USAGE on the schema may call these, whatever the default for functions is. The rest is
-- called by them.
revoke all on all routines in schema fenced from public;
grant execute on routine fenced.claim, fenced.enter, fenced.enter_new, fenced.settle,
  fenced.high_water, fenced.turnstile, fenced.sharers, fenced.terminate_older to public;

-- The type of an argument that says: this statement is a transaction of its own. Arguments are read
-- when the statement is bound, which is when its transaction begins, unless one is open already. In
-- one that somebody left open, what is written would be reported as stored, and be lost.
create domain fenced.autocommit as boolean
  constraint autocommit_check check (transaction_timestamp() = statement_timestamp());
grant usage on domain fenced.autocommit to public;
