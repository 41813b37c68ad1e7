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
-- They run after each row and see the row as it is written, after all other triggers and ON
-- CONFLICT. They check the mark themselves, so not even a forged context writes after a claim. A
-- statement that names another table, of which this one is a partition or a child, cannot get past
-- them, because triggers for rows belong to the rows.
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

-- Refuses unless this transaction has the fence of the resource. Names have no space, so '
-- name=token ' can be found in ' name=token name2=token2 ' in one way only. A resource that is null
-- is always refused, because no holder has it.
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
        and (pg_catalog.strpos(fences, pg_catalog.concat(' ', m.resource, '=', m.token, ' '))
             operator(pg_catalog.>) 0
             or fenced.is_elsewhere());
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
