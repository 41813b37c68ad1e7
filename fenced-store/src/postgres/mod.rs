//! PostgreSQL 12 or newer. The rule itself is in SQL: `migrations/postgres`.
//!
//! `operations.rs` has the calls of a fenced write: open it first. `calls.rs` writes the messages
//! that `operations.rs` sends, and `at_once.rs` sends a single statement. `claim.rs` ends the
//! sessions that keep a claim waiting. `installation.rs` has migrations, `rights.rs` and protected
//! tables. `administer.rs` and `job_rows.rs` call the SQL functions of administrators and of jobs.

mod administer;
mod at_once;
mod calls;
mod claim;
mod errors;
mod forget;
mod installation;
mod job_rows;
mod operations;
mod options;
mod rights;

use sqlx::Postgres;

pub(crate) use self::errors::classify;
pub use self::options::{PgIsolation, PgTxOptions};
use crate::{FencedLocks, FencedStore};

/// A fenced store in PostgreSQL.
pub type PgFencedStore = FencedStore<Postgres>;

/// A lock service combined with a fenced store in PostgreSQL.
pub type PgFencedLocks = FencedLocks<Postgres>;

impl FencedStore<Postgres> {
    /// The same store, with these settings for claims and transactions.
    #[must_use]
    pub fn with_options(self, options: PgTxOptions) -> Self {
        self.with_tx_options(options)
    }
}
