-- TRANSACTIONS
--
-- Functions that let a transaction in, wait for its end, and end its session.

-- Lets a transaction in. At READ COMMITTED the resource lock alone does it: it keeps claims out
-- while the transaction lasts, and the mark is read after it was taken, as it was committed last.
-- Where the snapshot may be older than that, the mark has to be locked: see
-- fenced.begin_fenced_by_lock.
--
-- The resource lock is first tried without waiting, and then the timeout plays no part. The try
-- fails if a claim waits for the lock, so it does not overtake that claim.
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
      where m.resource operator(pg_catalog.=) $1
        and (m.token operator(pg_catalog.=) $2
             and m.holder operator(pg_catalog.=) fenced.kept_digest($3)
             and m.issuer operator(pg_catalog.=) $4
             or fenced.is_elsewhere());
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
-- A call of a procedure costs less than a select of a function. A copy of the body of
-- fenced.begin_fenced costs less than a call of it.
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

-- For a commit without an answer: waits until no transaction of this grant is under way, and fails
-- as fenced.begin_fenced does. Afterwards only a transaction that begins later can commit for this
-- grant. Call at READ COMMITTED.
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
      for share; -- fails on a standby, where no transaction takes the resource lock
  end if;
  if not found then
    perform fenced.raise_refusal(settle.resource, settle.token, digest, settle.issuer);
  end if;
end $$;

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

-- Ends the sessions of older holders for which a claim of this grant has waited in vain. A holder
-- that is paused inside its transaction would hold up the claim without bound. Returns the pids of
-- the sessions.
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

revoke all on routine fenced.begin_fenced, fenced.begin_fenced_by_lock, fenced.limit_timeouts,
  fenced.begin_fenced_fast, fenced.settle, fenced.open_transactions, fenced.terminate_older
  from public;
grant execute on routine fenced.begin_fenced, fenced.begin_fenced_fast, fenced.settle,
  fenced.open_transactions, fenced.terminate_older to public;

-- The type of an argument that says: this statement is a transaction of its own. Its check looks
-- for an open transaction. Arguments are read when the statement is bound, and a statement alone
-- begins its transaction at that moment. A write inside a transaction that was left open would be
-- reported as stored, and be lost.
create domain fenced.autocommit as boolean
  constraint autocommit_check check (transaction_timestamp() = statement_timestamp());
grant usage on domain fenced.autocommit to public;

-- True if the mark shows this grant; then it is noted for triggers. The caller has the lock of the
-- resource. It compares and notes in one statement, because each statement costs. All names are
-- qualified, as in fenced.begin_fenced.
create function fenced.note_fence(resource text, token bigint, holder bytea, issuer text)
returns boolean
language plpgsql security definer as $$
begin
  return pg_catalog.set_config('fenced.open_transaction', pg_catalog.format('%s %s=%s ',
    pg_catalog.rtrim(pg_catalog.current_setting('fenced.open_transaction', true)),
    $1, $2), true) is not null
    from fenced.high_water_mark m
    where m.resource operator(pg_catalog.=) $1
      and (m.token operator(pg_catalog.=) $2
           and m.holder operator(pg_catalog.=) pg_catalog.encode(pg_catalog.sha256($3), 'hex')
           and m.issuer operator(pg_catalog.=) $4
           or fenced.is_elsewhere());
end $$;

-- An argument that fences the statement to which it belongs, and which need not mention it. The
-- server reads all arguments before the statement begins, in the transaction of the statement. A
-- value of this type exists only if that transaction is let in. So an INSERT, UPDATE or DELETE is
-- fenced as it stands, and is planned and answered as it is without a fence.
--
-- At READ COMMITTED and without timeouts this is fenced.begin_fenced with fewer steps. In any other
-- case, and to refuse, it calls that. A standby takes no writes and knows no locks of the primary.
--
-- Constraints are checked in the order of their names. Several such arguments are checked in their
-- own order. The holder is presented in UTF-8.
create type fenced.statement_grant as (
  resource text, token bigint, holder bytea, issuer text, lock_timeout_ms integer
);
create domain fenced.statement_fence as fenced.statement_grant
  constraint autocommit_check check (transaction_timestamp() = statement_timestamp())
  constraint fence_check check (
    current_setting('transaction_isolation') = 'read committed' and not pg_is_in_recovery()
    and pg_try_advisory_xact_lock_shared(hashtextextended((value).resource, 4711))
    and fenced.note_fence((value).resource, (value).token, (value).holder, (value).issuer)
    or fenced.begin_fenced((value).resource, (value).token,
                           convert_from((value).holder, 'UTF8'), (value).issuer,
                           (value).lock_timeout_ms) is not null);
grant usage on domain fenced.statement_fence to public;

revoke all on function fenced.note_fence from public;
grant execute on function fenced.note_fence to public;
