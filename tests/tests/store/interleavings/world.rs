//! The interface of a database for the runner.

use fenced_store::{Dialect, FencedStore};
use sqlx::Database;

use crate::interleavings::order::Who;

/// A fresh database with a table `journal (run, who)`.
pub(crate) trait World: Sized + 'static {
    type Db: Dialect;

    /// How the control begins its transaction.
    const NAIVE_BEGIN: NaiveBegin;

    /// The table of marks.
    const MARKS: &str;

    /// A holder's own store, with connections of its own.
    fn store(&self, who: Who) -> &FencedStore<Self::Db>;

    /// Waits until a holder waits for a lock of the database. Never returns if the database does
    /// not let transactions wait.
    async fn until_blocked(&self, who: Who);

    async fn execute(
        connection: &mut <Self::Db as Database>::Connection,
        sql: String,
    ) -> Result<(), sqlx::Error>;

    /// The only value of the only row.
    async fn number(
        connection: &mut <Self::Db as Database>::Connection,
        sql: String,
    ) -> Result<i64, sqlx::Error>;
}

/// The point at which the naive holder begins its transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NaiveBegin {
    /// Before the check.
    First(&'static str),
    /// Before the first write.
    AtTheWrite(&'static str),
}
