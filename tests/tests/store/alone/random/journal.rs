//! The stored rows, in the order in which the database has committed them.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use sqlx::PgPool;

/// A row of each transaction: its kind, and the number of rows of its resource that it has seen.
pub(super) const TABLE: &str = "CREATE TABLE journal (
    number bigint PRIMARY KEY, resource integer NOT NULL, token bigint NOT NULL,
    rows_seen bigint NOT NULL)";

const IN_ORDER: &str = "SELECT number, resource, token, rows_seen FROM journal
    ORDER BY resource, pg_xact_commit_timestamp(xmin)";

/// The commits that were answered.
#[derive(Default)]
pub(super) struct Journal(Mutex<Vec<i64>>);

/// The summary of the journal.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) writes: usize,
    /// Writes of a holder after a newer holder has committed.
    pub(super) out_of_order: usize,
    /// Writes of transactions that have not seen all earlier commits.
    pub(super) missed_reads: usize,
    /// Commits that were answered, but are not in the database.
    pub(super) lost: usize,
}

impl Journal {
    pub(super) fn committed(&self, number: i64) {
        let mut committed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        committed.push(number);
    }

    pub(super) async fn check(&self, pool: &PgPool) -> Seen {
        let rows: Vec<(i64, i32, i64, i64)> =
            sqlx::query_as(IN_ORDER).fetch_all(pool).await.unwrap();
        let mut seen = Seen {
            writes: rows.len(),
            ..Seen::default()
        };
        let (mut current, mut before, mut greatest) = (-1, 0, 0);
        for (_, resource, token, rows_seen) in &rows {
            if *resource != current {
                (current, before, greatest) = (*resource, 0, 0);
            }
            seen.out_of_order += usize::from(*token < greatest);
            seen.missed_reads += usize::from(*rows_seen < before);
            greatest = i64::max(greatest, *token);
            before += 1;
        }
        let stored: BTreeSet<_> = rows.iter().map(|(number, ..)| number).collect();
        let committed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.lost = committed
            .iter()
            .filter(|number| !stored.contains(number))
            .count();
        seen
    }
}
