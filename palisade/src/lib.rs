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
//! - [`Acquire`] says how long to hold and to wait, whether to queue or poll, and for whom
//!   ([`Owner`]); [`run`](Acquire::run) is for a closure.
//! - [`LeaseGuard`] is a lease that the watchdog renews; [`lost`](LeaseGuard::lost) completes when
//!   it is over. [`DetachedLease`] is one that you renew and release yourself, as gateways do.
//! - [`Sequencer`], with its [`FencingToken`], is the proof of a grant, which travels with every
//!   write.
//! - `store::FencedStore` is the database that refuses stale writes: `begin` opens a fenced
//!   transaction. `store::FencedLocks` is lock service and store: acquire claims, `guard.begin()`
//!   writes.
//! - `jobs::Jobs` gives the pair `once`, `scheduled`, and a `lead` that fences.
//! - `http::FencingLayer` and `http::Fenced` are the `Fencing-Token` header in tower and axum;
//!   `http::client` sends it.
//! - [`Error`] and [`Lost`] say what went wrong, and whether it may have taken effect.
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
