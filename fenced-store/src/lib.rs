#![cfg_attr(feature = "postgres", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "postgres"),
    doc = "Database transactions that refuse stale fencing tokens."
)]
#![cfg_attr(
    not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
    expect(dead_code, reason = "for databases, of which there is none")
)]
#![forbid(unsafe_code)]

pub mod admin;
mod begin;
mod begin_request;
mod classify;
mod counted;
mod dialect;
mod error;
mod fenced_locks;
mod high_water;
#[cfg(feature = "http")]
mod http;
#[doc(hidden)]
pub mod jobs;
mod leaked;
mod literal;
mod marks;
mod migrations;
#[cfg(feature = "mysql")]
mod mysql;
mod not_ready;
mod observer;
mod open_tx;
#[cfg(feature = "postgres")]
mod postgres;
mod protect;
mod protection;
mod queries;
mod readiness;
mod receipt;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod rule;
mod savepoint;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statement;
mod store;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod triggers;
mod tx;
mod tx_name;
mod uninterrupted;

#[cfg(feature = "mysql")]
pub use self::mysql::{MySqlFencedLocks, MySqlFencedStore, MySqlTxOptions};
#[cfg(feature = "postgres")]
pub use self::postgres::{PgFencedLocks, PgFencedStore, PgIsolation, PgTxOptions};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteFencedLocks, SqliteFencedStore};
pub use self::{
    begin::{Begin, Executed, Presented},
    dialect::Dialect,
    error::FenceError,
    fenced_locks::{
        AcquireAllFenced, AcquireFenced, FencedGuard, FencedGuards, FencedLockError, FencedLocks,
        NotCommitted,
    },
    high_water::HighWater,
    not_ready::{NotReady, Rights},
    observer::{Observed, Observer},
    protection::Protection,
    receipt::Receipt,
    savepoint::FencedSavepoint,
    store::FencedStore,
    tx::FencedTx,
};
