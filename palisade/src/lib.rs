#![doc = include_str!("../README.md")]
//!
//! # The types, from the lock to the write
//!
//! - [`connect`](connect()) makes a [`LockManager`] of a URL, and puts it in front of a store;
//!   `open` makes lock service and store of one database.
//! - [`LockManager`] has [`acquire`](LockManager::acquire),
//!   [`acquire_all`](LockManager::acquire_all),
//!   [`acquire_together`](LockManager::acquire_together), [`lead`](LockManager::lead), and for
//!   operators [`inspect`](LockManager::inspect),
//!   [`list`](LockManager::list) and [`force_release`](LockManager::force_release).
//! - [`Acquire`] has the settings of an acquisition: how long to hold and to wait, whether to queue
//!   or poll, and for which [`Owner`]. [`run`](Acquire::run) runs a closure under the lease.
//! - [`LeaseGuard`] is a lease that the watchdog renews; [`lost`](LeaseGuard::lost) completes when
//!   the lease is over. [`DetachedLease`] is a lease that you renew and release yourself, as
//!   gateways do.
//! - [`Sequencer`], with its [`FencingToken`], is the proof of a grant, which travels with every
//!   write.
//! - `store::FencedStore` is the database that refuses stale writes: `begin` opens a fenced
//!   transaction. `store::FencedLocks` combines lock service and store: `acquire` also claims, and
//!   `guard.begin()` begins a fenced transaction.
//! - `jobs::Jobs` adds `once`, `scheduled`, and a fenced `lead` to `FencedLocks`.
//! - `http::FencingLayer` and `http::Fenced` are the `Fencing-Token` header in tower and axum;
//!   `http::client` sends it.
//! - [`Error`] and [`Lost`] say what went wrong, and whether the request may have taken effect.
#![forbid(unsafe_code)]

mod connect;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod open;

#[cfg(feature = "http")]
pub use fenced_http as http;
#[cfg(feature = "jobs")]
pub use fenced_jobs as jobs;
#[cfg(feature = "store")]
pub use fenced_store as store;
pub use lock_core::*;
#[cfg(feature = "etcd")]
pub use palisade_etcd as etcd;
#[cfg(feature = "mysql")]
pub use palisade_mysql as mysql;
#[cfg(feature = "postgres")]
pub use palisade_postgres as postgres;
#[cfg(feature = "redis")]
pub use palisade_redis as redis;
#[cfg(feature = "redlock")]
pub use palisade_redlock as redlock;
#[cfg(feature = "sqlite")]
pub use palisade_sqlite as sqlite;
#[cfg(feature = "zookeeper")]
pub use palisade_zookeeper as zookeeper;

pub use self::connect::{Connect, connect};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use self::open::{Database, open};
