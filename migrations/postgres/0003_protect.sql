-- Tables that take no write without a fence: a net against bugs (a script, an ORM, a session of
-- psql), not against malice.
--
--   fenced.protect(table, id_column, prefix)  each row is a resource of its own: prefix || id
--   fenced.protect(table, resource)           the whole table is one resource
--   fenced.unprotect(table)                   removes what the others made
--
-- Triggers refuse INSERT, UPDATE, DELETE and TRUNCATE in a transaction that has not entered the
-- resource by fenced.enter:
--
--   FN010 nothing was entered                detail {"table", "required"}
--   FN011 another resource was entered       detail {"table", "required"}
--   FN001, FN003 as fenced.enter raises them, for a context that was forged
--
-- They run after the statement and see what is really to be written, whatever other triggers have
-- changed, and on conflict do what. They enter by themselves, so not even a forged context writes
-- after a claim.
--
-- NOT stopped: session_replication_role = replica (superusers, logical replication), whoever may
-- disable or drop the triggers (the table's owner), whoever sets fenced.entered to the token of the
-- current holder, TRUNCATE of a partition that was attached after the call (call again), and a
-- statement that matches no row.

-- Refuses unless this transaction has entered the resource. Names have no space, so ' name=token '
-- can be found in ' name=token name2=token2 ' in one way only. Null is a resource that nobody has.
--
-- Whoever has entered has the turnstile, and gets it again for nothing; a forged context gets it
-- here. As in fenced.enter it is enough at READ COMMITTED, and all names are qualified.
create function fenced.require(resource text, relation regclass) returns void
language plpgsql security definer as $$
declare
  entered pg_catalog.text := pg_catalog.current_setting('fenced.entered', true);
begin
  if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.=) 'read committed'
     and pg_catalog.pg_try_advisory_xact_lock_shared(
       pg_catalog.hashtextextended(require.resource, 4711)) then
    perform from fenced.mark m
      where m.resource operator(pg_catalog.=) require.resource
        and pg_catalog.strpos(entered, pg_catalog.concat(' ', m.resource, '=', m.token, ' '))
            operator(pg_catalog.>) 0;
  else
    perform from fenced.mark m
      where m.resource operator(pg_catalog.=) require.resource
        and pg_catalog.strpos(entered, pg_catalog.concat(' ', m.resource, '=', m.token, ' '))
            operator(pg_catalog.>) 0
      for share;
  end if;
  if not found then
    perform fenced.refuse_write(require.resource, require.relation, coalesce(entered, ''));
  end if;
end $$;

-- Raises the refusal that fits what was entered.
create function fenced.refuse_write(resource text, relation regclass, entered text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  presented bigint;
  high_water bigint;
begin
  select substr(e, length(refuse_write.resource) + 2) into presented
    from unnest(string_to_array(refuse_write.entered, ' ')) e
    where left(e, length(refuse_write.resource) + 1) = refuse_write.resource || '='
      and substr(e, length(refuse_write.resource) + 2) ~ '^[0-9]{1,15}$';
  if not found then
    raise exception using
      errcode = case btrim(refuse_write.entered) when '' then 'FN010' else 'FN011' end,
      message = format('%s to %s, which needs the fence of %s',
                       case btrim(refuse_write.entered)
                         when '' then 'unfenced write' else 'write under another fence' end,
                       relation,
                       case when refuse_write.resource is null then 'the whole table'
                         else format('"%s"', refuse_write.resource) end),
      detail = json_build_object('table', relation::text, 'required', refuse_write.resource),
      hint = 'Call fenced.enter for the resource first in the transaction.';
  end if;
  select m.token into high_water from fenced.mark m where m.resource = refuse_write.resource;
  if high_water > presented then
    raise exception using
      errcode = 'FN001',
      message = format('stale fencing token %s for "%s": the high-water mark is %s',
                       presented, refuse_write.resource, high_water),
      detail = json_build_object('resource', refuse_write.resource, 'presented', presented,
                                 'high_water', high_water),
      hint = 'A newer holder has claimed the resource. Acquire the lock afresh.';
  end if;
  raise exception using
    errcode = 'FN003',
    message = format('fencing token %s for "%s" has not been claimed',
                     presented, refuse_write.resource),
    detail = json_build_object('resource', refuse_write.resource, 'presented', presented),
    hint = 'Call fenced.enter for the resource first in the transaction.';
end $$;

-- Protects a table each row of which is a resource: 'account:42' is the one whose id is 42. The
-- text of the id counts, as in id::text. An UPDATE that changes the id needs both.
--
-- The function that the triggers call is generated, because looking a column up by its name costs
-- more than the check itself; it assigns what it calls, which costs less than to perform it.
-- Calling again changes nothing; with other arguments it replaces.
create function fenced.protect(relation regclass, id_column name, prefix text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform from pg_attribute a
    where a.attrelid = relation and a.attname = id_column and a.attnum > 0 and not a.attisdropped;
  if not found then
    raise exception using
      errcode = 'undefined_column',
      message = format('cannot protect %s: it has no column %I', relation, id_column);
  end if;
  if prefix !~ '^[]-~!#-[]*$' or length(prefix) > 255 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('cannot protect %s: "%s" begins no name of a resource', relation, prefix),
      hint = 'A name has up to 256 visible ASCII characters, but no quotation mark or backslash.';
  end if;
  perform fenced.install_guard(relation, true, format($body$
declare
  done text;
begin
  if tg_op = 'TRUNCATE' then
    done := fenced.require(null, tg_relid);
  elsif tg_op = 'INSERT' then
    done := fenced.require(%2$L || new.%1$I::text, tg_relid);
  else
    done := fenced.require(%2$L || old.%1$I::text, tg_relid);
    if tg_op = 'UPDATE' then
      if new.%1$I::text is distinct from old.%1$I::text then
        done := fenced.require(%2$L || new.%1$I::text, tg_relid);
      end if;
    end if;
  end if;
  return null;
end $body$, id_column, prefix));
end $$;

-- Protects a table that is one resource, whatever row is written.
--
-- Whoever forgets the prefix has named a column, and would replace the protection of each row.
create function fenced.protect(relation regclass, resource text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform from pg_attribute a
    where a.attrelid = relation and a.attname = resource and a.attnum > 0 and not a.attisdropped;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('cannot protect %s as the resource "%s": it has a column of that name',
                       relation, resource),
      hint = 'For a resource per row: fenced.protect(table, id_column, prefix).';
  end if;
  if resource !~ '^[]-~!#-[]+$' or length(resource) > 256 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('cannot protect %s: "%s" is no name of a resource', relation, resource),
      hint = 'A name has up to 256 visible ASCII characters, but no quotation mark or backslash.';
  end if;
  perform fenced.install_guard(relation, false, format($body$
declare
  done text;
begin
  done := fenced.require(%L, tg_relid);
  return null;
end $body$, resource));
end $$;

-- Triggers for each row are cloned to all partitions, also to later ones. Those for each statement
-- fire for the table that the statement names: hence rows even if the whole table is one resource,
-- and a trigger for TRUNCATE on each partition.
--
-- One at a time for each table: two that both found it unprotected would both create the triggers.
--
-- In the trigger's function nothing is found but the catalog and what is qualified, and it runs as
-- whoever protected the table: whoever writes needs no right in this schema.
create function fenced.install_guard(relation regclass, each_row boolean, body text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  kind "char" := (select c.relkind from pg_class c where c.oid = relation);
  guard text := format('fenced.guard_%s', md5(concat(relation::oid, random(), clock_timestamp())));
  member regclass;
begin
  if kind not in ('r', 'p') then
    raise exception using
      errcode = 'wrong_object_type',
      message = format('cannot protect %s: it is not a table', relation);
  end if;
  perform pg_advisory_xact_lock(fenced.turnstile('the guards of ' || relation::oid));
  if fenced.is_guarded(relation, body) then
    return;
  end if;
  perform fenced.unprotect(relation);
  execute format('create function %s() returns trigger language plpgsql security definer
                  set search_path = pg_catalog, pg_temp as %L', guard, body);
  execute format('create trigger fenced_guard after insert or update or delete on %s
                  for each %s execute function %s()',
                 relation, case when each_row or kind = 'p' then 'row' else 'statement' end, guard);
  for member in select p.relid from pg_partition_tree(relation) p union select relation loop
    execute format('create trigger fenced_guard_truncate before truncate on %s
                    for each statement execute function %s()', member, guard);
  end loop;
end $$;

-- Whether all of it is there already, and fires: O and A do, in sessions of applications. The
-- triggers of a partition can be switched off without those of its table.
create function fenced.is_guarded(relation regclass, body text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select exists (
    select from pg_trigger g join pg_proc f on f.oid = g.tgfoid
    where g.tgrelid = relation and g.tgname = 'fenced_guard'
      and g.tgenabled in ('O', 'A') and f.prosrc = body
      and not exists (
        select from (select p.relid from pg_partition_tree(relation) p union select relation) m,
          unnest(array['fenced_guard', 'fenced_guard_truncate']) name
        where not exists (
          select from pg_trigger t
          where t.tgrelid = m.relid and t.tgfoid = f.oid and t.tgname = name
            and t.tgenabled in ('O', 'A'))))
$$;

-- Removes the protection of a table. Of one that is not protected it removes nothing.
create function fenced.unprotect(relation regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  guard regprocedure;
  member regclass;
begin
  for guard in
    select distinct g.tgfoid from pg_trigger g
    where g.tgrelid = relation and g.tgname in ('fenced_guard', 'fenced_guard_truncate')
  loop
    execute format('drop trigger if exists fenced_guard on %s', relation);
    for member in
      select g.tgrelid from pg_trigger g
      where g.tgfoid = guard and g.tgname = 'fenced_guard_truncate'
    loop
      execute format('drop trigger fenced_guard_truncate on %s', member);
    end loop;
    execute format('drop function %s', guard);
  end loop;
end $$;

-- Who protects tables owns them, and has to be given the right to create functions in this schema
-- and to call these. Who writes needs none. The triggers run as whoever made them, so that one may
-- call what they call.
revoke all on function fenced.require, fenced.refuse_write, fenced.install_guard,
  fenced.is_guarded, fenced.unprotect, fenced.protect(regclass, name, text),
  fenced.protect(regclass, text) from public;
grant execute on function fenced.require to public;
