-- Ordered writes: a holder numbers its transactions, and those that come late are refused.
--
--   fenced.in_order   takes a number if it is greater than those of all transactions committed
--                     under the same grant. Once per transaction and resource, after fenced.enter.
--
--   FN005 out of order  detail {"resource", "presented", "last"}
--   FN010 not entered   detail {"required"}

create table fenced.sequence (
  resource text collate "C" primary key,
  token    bigint not null,
  holder   text not null,
  seq      bigint not null check (seq between 1 and 999999999999999)
);
comment on table fenced.sequence is
  'The number of the last transaction per resource, of the last grant that counted.';

-- Refuses unless this transaction has entered the resource under this grant. Its
-- turnstile is held then, so the mark stays. Names have no space: see fenced.enter.
create function fenced.require_entered(resource text, token bigint, holder text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform from fenced.mark m
    where m.resource = require_entered.resource and m.token = require_entered.token
      and m.holder = require_entered.holder
      and strpos(current_setting('fenced.entered', true),
                 concat(' ', m.resource, '=', m.token, ' ')) > 0;
  if not found then
    raise exception using
      errcode = 'FN010',
      message = format('this transaction has not entered "%s" with fencing token %s',
                       require_entered.resource, require_entered.token),
      detail = json_build_object('required', require_entered.resource),
      hint = 'Call fenced.enter for the resource first in the transaction.';
  end if;
end $$;

-- A transaction of the same grant that has presented a number and is not over is waited for: until
-- its commit, which takes the number, or its rollback, which gives it back. At REPEATABLE READ and
-- above the one that waited for a commit fails (40001).
--
-- It has entered, so a row of another grant is an older one's: a new grant begins afresh.
create function fenced.in_order(
  resource text, token bigint, holder text, seq bigint,
  lock_timeout_ms integer default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  lock_timeout_before text := current_setting('lock_timeout');
  last bigint;
begin
  perform fenced.require_entered(in_order.resource, in_order.token, in_order.holder);
  if lock_timeout_ms is not null then
    perform set_config('lock_timeout', fenced.tighter('lock_timeout', lock_timeout_ms), true);
  end if;
  insert into fenced.sequence as s (resource, token, holder, seq)
    values (in_order.resource, in_order.token, in_order.holder, in_order.seq)
    on conflict on constraint sequence_pkey do update
      set token = excluded.token, holder = excluded.holder, seq = excluded.seq
      where s.token <> excluded.token or s.holder <> excluded.holder or s.seq < excluded.seq;
  if not found then
    select s.seq into last from fenced.sequence s where s.resource = in_order.resource;
    raise exception using
      errcode = 'FN005',
      message = format('transaction %s of fencing token %s for "%s" comes after %s',
                       in_order.seq, in_order.token, in_order.resource, last),
      detail = json_build_object('resource', in_order.resource, 'presented', in_order.seq,
                                 'last', last),
      hint = 'A transaction with this number or a greater one has been committed.';
  end if;
  perform set_config('lock_timeout', lock_timeout_before, true);
end $$;

revoke all on function fenced.require_entered, fenced.in_order from public;
grant execute on function fenced.in_order to public;
