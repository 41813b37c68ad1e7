-- The audit: what was committed under which grant. Off unless the store is told otherwise.
--
--   fenced.record   leaves a row that is there if and only if the transaction is committed. Once
--                   per transaction and resource, after fenced.enter: refuses otherwise (FN010).

create table fenced.audit (
  id       bigint generated always as identity primary key,
  tx       text not null,
  began_at timestamptz not null default clock_timestamp(),
  db_user  text not null,
  resource text collate "C" not null,
  token    bigint not null,
  issuer   text collate "C" not null,
  holder   text not null,
  seq      bigint
);
comment on table fenced.audit is
  'One row per committed transaction and resource. Nothing here is read by the store: rows may be
   moved elsewhere or deleted.';
comment on column fenced.audit.tx is 'The name of the transaction: its rows have it in common.';
comment on column fenced.audit.db_user is 'The role that had logged in.';
comment on column fenced.audit.holder is 'The fingerprint of the holder, as in logs: no secret.';
create index audit_tx on fenced.audit (tx);

-- Of a digest that Palisade passes, the first 16 digits are the fingerprint.
create function fenced.record(
  resource text, token bigint, holder text, issuer text, tx text, seq bigint default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform fenced.require_entered(record.resource, record.token, record.holder);
  insert into fenced.audit (tx, db_user, resource, token, issuer, holder, seq)
    values (record.tx, session_user, record.resource, record.token, record.issuer,
            left(record.holder, 16), record.seq);
end $$;

revoke all on function fenced.record from public;
grant execute on function fenced.record to public;
