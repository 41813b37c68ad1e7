use std::time::{Duration, SystemTime};

use fenced_store::Receipt;
use lock_core::FencingToken;

use crate::{SlotState, Standing};

/// The outcome of a request to run a slot.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fenced_store::{FencedLocks, SqliteFencedStore};
/// # let directory = tempfile::tempdir()?;
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(directory.path().join("db"));
/// # let options = SqliteFencedStore::recommended(options.create_if_missing(true));
/// # let store = SqliteFencedStore::new(sqlx::SqlitePool::connect_with(options).await?);
/// # store.migrate().await?;
/// # sqlx::query("CREATE TABLE accounts AS SELECT 42 AS id, 100 AS balance")
/// #     .execute(store.pool())
/// #     .await?;
/// # let accounts = FencedLocks::new(palisade::connect("memory:").await?, store);
/// use fenced_jobs::{JobOutcome, Jobs};
/// use fenced_store::FencedLockError;
///
/// let outcome = accounts
///     .once("interest", "2026-11-27")
///     .run(async |tx| {
///         let add = sqlx::query("UPDATE accounts SET balance = balance + balance / 100");
///         Ok::<_, FencedLockError>(add.execute(&mut **tx).await?.rows_affected())
///     })
///     .await?;
/// match outcome {
///     JobOutcome::Ran(rows, receipt) => println!("{rows} rows under token {}", receipt.token()),
///     JobOutcome::Done { token, at } => println!("done before, under {token}, {at:?}"),
///     JobOutcome::BackingOff { retry_in, .. } => println!("it failed; again in {retry_in:?}"),
///     other => println!("not now: {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the job may not have run"]
#[non_exhaustive]
pub enum JobOutcome<T> {
    /// The slot ran now, and is done: the result of the work, and the receipt of the commit.
    Ran(T, Receipt),
    /// The slot was done before, by this or another process.
    Done {
        /// The token of the grant under which it was done.
        token: FencingToken,
        /// The time at which it was done, by the clock of the database.
        at: SystemTime,
    },
    /// The slot is older than all slots of the job that the store remembers. It counts as done.
    Forgotten,
    /// The slot has failed, and is not due again yet.
    BackingOff {
        /// The number of attempts that have failed.
        attempts: u64,
        /// The time until the slot is due again.
        retry_in: Duration,
    },
    /// Another runner holds the lease of the job, and is probably at work on it.
    Held,
}

impl<T> JobOutcome<T> {
    /// Whether the slot is done, now or before.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Ran(..) | Self::Done { .. } | Self::Forgotten)
    }

    /// The outcome of a slot that is not due; `None` if it is due.
    pub(crate) fn told(state: &SlotState) -> Option<Self> {
        match state.standing {
            Standing::Due => None,
            Standing::Done { token, at } => Some(Self::Done { token, at }),
            Standing::Forgotten => Some(Self::Forgotten),
            Standing::BackingOff(retry_in) => Some(Self::BackingOff {
                attempts: state.attempts,
                retry_in,
            }),
            // Only a later version of the store knows this state. The slot is not due.
            _ => Some(Self::Held),
        }
    }

    /// The result as a metric label.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Ran(..) => "ran",
            Self::Done { .. } | Self::Forgotten => "done",
            Self::BackingOff { .. } => "backing_off",
            Self::Held => "held",
        }
    }
}
