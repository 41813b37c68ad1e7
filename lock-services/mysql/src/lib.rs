//! MySQL 8.0.29, MariaDB 10.6 or newer as lock service: the database that has the data can have the
//! locks, too.
//!
//! # Use it
//! The URL is that of the database, `mysql://user:password@host/database`, or the same with
//! `mariadb:`. The tables and procedures are those of the fenced store: `FencedStore::migrate`
//! makes them, or `palisade migrations` prints them. A user needs EXECUTE on the procedures and no
//! right on any table; to end leases by force, EXECUTE on `fenced_force_release`, too.
//!
//! Any language can call the procedures: they are commented in the migration.
//!
//! [`ConnectOptions`](lock_core::backend::ConnectOptions) has the settings. The response timeout is
//! 2 s by default, and may be 10 ms to 10 s. A timeout that is longer than a failover of the
//! database only delays requests that are repeated anyway. Another initial token than the clock is
//! an error. This lock service has one parameter of its own, `connections`: the greatest number of
//! connections, by default 8. Waiters need no connection.
//!
//! # Tokens
//! A token is the greatest of three numbers: the last token of the resource plus one, the
//! database's clock in units of 10 µs, and the floor of [`at_least`](lock_core::Acquire::at_least).
//! So tokens rise even if a row was deleted, a backup was restored, or a replica was promoted
//! without the last grant, as long as the clocks differ by less than the time that this took.
//!
//! # Waiting
//! First come, first served, across all clients. One look asks for all waiters of the process,
//! every 5 to 250 ms. A waiter that is silent for 3 s is passed over.
//!
//! # Servers that are refused
//! - A server with `--sysdate-is-now`, because each user can set its clock.
//! - A server whose binary log has statements (`binlog_format=STATEMENT`), because it takes no
//!   writes at READ COMMITTED.
//! - A node of Galera, because the lock of a row holds on that node only.
//!
//! # Proxies
//! Each request is one message and a transaction of its own. No statement is prepared, and a
//! request leaves no change in its session.
//!
//! # Power cuts and replicas
//! A grant, a renewal and a release are as durable as each commit of the server: set
//! `innodb_flush_log_at_trx_commit=1`, which is the default. A replica that is promoted without the
//! last grants or renewals may grant the same resource again: then there are two holders until the
//! ttl of the first is over, and the store refuses one of them.
#![forbid(unsafe_code)]

mod backend;
mod call;
mod client;
mod connections;
mod error;
mod row;
mod server;
mod service_url;

pub use self::backend::MySqlBackend;

/// The kind that errors name and the default issuer.
const KIND: &str = "mysql";
