//! PostgreSQL 12 or newer as lock service: the database that has the data can have the locks, too.
//!
//! # Use it
//! The URL is that of the database, `postgres://user:password@host/database`. The tables and
//! functions are those of the fenced store: `FencedStore::migrate` makes them, or `palisade
//! migrations` prints them. A role needs USAGE on the schema `fenced` and no right on any table; to
//! end leases by force it needs EXECUTE on `fenced.force_release`, too.
//!
//! Any language can call the functions: they are commented in the migration, and `\df fenced.*`
//! shows them.
//!
//! [`ConnectOptions`](lock_core::backend::ConnectOptions) has the settings. The response timeout is
//! 2 s by default, and may be 10 ms to 10 s. A timeout that is longer than a failover of the
//! database only delays requests that are repeated anyway. Another initial token than the clock is
//! an error. Postgres has these parameters besides those of sqlx:
//!
//! | parameter | meaning | default |
//! |---|---|---|
//! | `connections` | the greatest number, besides the one that listens; waiters need none | 8 |
//! | `listen` | the URL of the database itself, see [Poolers](#poolers) | the same |
//!
//! # Tokens
//! A token is the greatest of three numbers: the last token of the resource plus one, the
//! database's clock in units of 10 µs, and the floor of [`at_least`](lock_core::Acquire::at_least).
//! So tokens rise even if a row was deleted, a backup was restored, or a standby was promoted
//! without the last grant, as long as the clocks differ by less than the time that this took.
//!
//! # Waiting
//! First come, first served, across all clients. A waiter learns of its turn by `NOTIFY`, on one
//! connection for the whole process. Until that connection is there, the first in the queue looks
//! every 5 to 250 ms. One look asks for all waiters of the process. A waiter that is silent for 3 s
//! is passed over. The queue is in an unlogged table: after a crash of the server the waiters join
//! it again, in any order.
//!
//! # Poolers
//! Each request is one message and a transaction of its own, so the pool may be a PgBouncer in
//! transaction mode. Through a pooler no statement is prepared, and no client listens. So give the
//! database's own address with `?listen=` in the URL. Without that address, waiters look again and
//! again.
//!
//! # Power cuts and standbys
//! A grant is flushed to disk and to synchronous standbys before it is answered, whatever
//! `synchronous_commit` says. A renewal is flushed to disk only, so that a standby that is gone
//! ends no lease. A release is not flushed: a lease whose release is lost ends by its ttl. A
//! standby that is promoted without the last grants or renewals may grant the same resource again:
//! then there are two holders until the ttl of the first is over, and the store refuses one of
//! them.
#![forbid(unsafe_code)]

mod backend;
mod call;
mod client;
mod connections;
mod error;
mod listener;
mod own_session;
mod row;
mod server;
mod service_url;
mod sql;

pub use self::{
    backend::{PostgresBackend, address_of},
    own_session::is_own_session,
};

/// The kind that errors name and the default issuer.
const KIND: &str = "postgres";
