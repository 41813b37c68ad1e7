//! MySQL 8 and MariaDB 10.6 or newer, on one writable server: with several writers (Galera) two
//! transactions can pass the check at once.
//!
//! A locking read sees the latest committed mark at every isolation level and keeps claims out
//! until the transaction ends. InnoDB serves lock requests in their order, so no transaction
//! overtakes a claim that waits.
//!
//! `operations.rs` has the calls of a fenced write: open it first. It begins with `fence.rs` and
//! claims with `claim.rs`, which ends the sessions in its way with `end_sessions.rs`. `answers.rs`
//! keeps the answers of a connection in step. `installation.rs` has the rest: migrations under
//! `schema_lock.rs`, `rights.rs`, and protected tables in `protect.rs`.

mod answers;
mod by_statements;
mod claim;
mod end_sessions;
mod errors;
mod fence;
mod forget;
mod installation;
mod operations;
mod options;
mod protect;
mod rights;
mod schema_lock;

use sqlx::MySql;

pub(crate) use self::errors::classify;
pub use self::options::MySqlTxOptions;
use crate::{FencedLocks, FencedStore};

/// A fenced store in MariaDB or MySQL.
///
/// A statement that fails may leave the transaction open (a lock wait that took too long) or end it
/// (a deadlock). Later statements are then stored without the failed one, or even unfenced, and
/// only in the second case does the commit fail: roll back after any error.
pub type MySqlFencedStore = FencedStore<MySql>;

/// A lock service combined with a fenced store in MariaDB or MySQL.
pub type MySqlFencedLocks = FencedLocks<MySql>;

impl FencedStore<MySql> {
    /// The same store, with these settings for claims and transactions.
    #[must_use]
    pub fn with_options(self, options: MySqlTxOptions) -> Self {
        self.with_tx_options(options)
    }
}
