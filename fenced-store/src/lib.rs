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
mod counted;
mod dialect;
mod error;
mod fenced_locks;
mod forget;
#[cfg(feature = "http")]
mod http;
#[doc(hidden)]
pub mod jobs;
pub mod memory;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod rule;
mod schema;
#[cfg(feature = "sqlite")]
mod sqlite;
mod storage;
mod store;
mod transaction;

#[cfg(feature = "mysql")]
pub use self::mysql::{MySqlFencedLocks, MySqlFencedStore, MySqlTxOptions};
#[cfg(feature = "postgres")]
pub use self::postgres::{PgFencedLocks, PgFencedStore, PgIsolation, PgTxOptions};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteFencedLocks, SqliteFencedStore};
pub use self::{
    dialect::Dialect,
    error::FenceError,
    fenced_locks::{
        AcquireAllFenced, AcquireFenced, FencedGuard, FencedGuards, FencedLockError, FencedLocks,
        NotCommitted,
    },
    forget::{Forget, Forgotten},
    memory::{Memory, MemoryFencedLocks, MemoryFencedStore},
    rule::{HighWater, Observed, Observer},
    schema::{NotReady, Protection, Rights},
    storage::Storage,
    store::FencedStore,
    transaction::{Begin, Executed, FencedSavepoint, FencedTx, Presented, Receipt},
};
