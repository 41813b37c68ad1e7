#![cfg_attr(feature = "postgres", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "postgres"),
    doc = "Database transactions that refuse stale fencing tokens."
)]
#![forbid(unsafe_code)]

pub mod admin;
mod begin;
mod classify;
mod counted;
mod dialect;
mod entry;
mod error;
mod high_water;
#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod literal;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod marks;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod migrations;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod protected;
mod protection;
mod readiness;
mod receipt;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod rule;
mod savepoint;
mod single;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod strays;
mod tx;
mod uninterrupted;

#[cfg(feature = "mysql")]
pub use self::mysql::{MySqlFencedStore, MySqlProtected, MySqlTxOptions};
#[cfg(feature = "postgres")]
pub use self::postgres::{PgFencedStore, PgIsolation, PgProtected, PgTxOptions};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteFencedStore, SqliteProtected};
pub use self::{
    begin::{Begin, Presented},
    dialect::Dialect,
    error::FenceError,
    high_water::HighWater,
    protected::{
        AcquireAllProtected, AcquireProtected, Protected, ProtectedError, ProtectedGuard,
        ProtectedGuards,
    },
    protection::Protection,
    readiness::{NotReady, Rights},
    receipt::Receipt,
    savepoint::FencedSavepoint,
    single::Executed,
    store::FencedStore,
    tx::FencedTx,
};
