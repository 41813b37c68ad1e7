-- TICKETS
--
-- The sequence of an identity in an unlogged table is unlogged, too, since PostgreSQL 15. A standby
-- that is promoted before it has written its part of that sequence to disk loses it ("bad magic
-- number in sequence"), and then no attempt can take a place in a queue. A sequence of its own is
-- logged, at one record for 32 tickets.

create sequence fenced.waiter_ticket as bigint;
select pg_catalog.setval(
  'fenced.waiter_ticket', (select coalesce(max(w.ticket), 0) + 1 from fenced.waiter w), false);
alter table fenced.waiter alter column ticket drop identity;
alter table fenced.waiter
  alter column ticket set default pg_catalog.nextval('fenced.waiter_ticket');
comment on sequence fenced.waiter_ticket is 'The places of fenced.waiter, in the order of arrival.';
