//! Forgets idle marks, and keeps a floor in their place: [`FencedStore::forget_marks`].
//!
//! The folders of the databases have one batch each in their `forget.rs`; `by_statements.rs` is for
//! two of them. `fenced_locks/refresh.rs` keeps the marks of living guards.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) mod by_statements;

use std::time::Duration;

use lock_core::{FencingToken, InitialToken};

use crate::{
    FenceError, FencedStore, Storage, admin::AdminError, counted,
    transaction::uninterrupted::uninterrupted,
};

/// The order to forget idle marks.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use fenced_store::Forget;
///
/// let daily = Forget::older_than(Duration::from_secs(24 * 60 * 60));
/// # let _ = daily;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an order does nothing until a store gets it"]
pub struct Forget {
    pub(crate) older_than: Duration,
    pub(crate) below: Option<FencingToken>,
}

/// The least age of a mark that is forgotten, unless a longer hold was stated.
pub(crate) const LEAST_AGE: Duration = Duration::from_secs(60 * 60);

/// The longest hold that can be stated, which is 366 days.
pub(crate) const LONGEST_HOLD_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The least token of 15 digits. The clock has passed it in 2001.
pub(crate) const LEAST_OF_CLOCK: u64 = 100_000_000_000_000;

impl Forget {
    /// Forgets marks that are older than this, an hour or more. The tokens of the lock service have
    /// to follow the clock, as those of Postgres and SQLite do. Those of Redis and Redlock do not:
    /// each of their counters begins at the clock, and then counts by itself.
    pub const fn older_than(age: Duration) -> Self {
        Self {
            older_than: age,
            below: None,
        }
    }

    /// The same, of a lock service whose tokens are the revisions of one counter, as those of etcd,
    /// of ZooKeeper, and of the service in memory are. Only marks below this token are forgotten:
    /// name one that the service has just issued.
    /// [`FencedLocks::forget_marks`](crate::FencedLocks::forget_marks) asks for one.
    ///
    /// A token that the service has not issued yet would shut out all its holders.
    pub const fn below(mut self, issued: FencingToken) -> Self {
        self.below = Some(issued);
        self
    }

    /// The least token that is not forgotten: no holder that is as young as the marks that stay has
    /// a token below it.
    pub(crate) fn ceiling(&self, unix_time: Duration) -> u64 {
        let then = unix_time.saturating_sub(self.older_than);
        match self.below {
            None => InitialToken::clock_token(then),
            Some(below) => std::cmp::min(below.get(), InitialToken::clock_token(unix_time)),
        }
    }

    /// Fails if holders may hold for longer than the marks are old.
    pub(crate) fn check_age(&self, longest_hold: Duration) -> Result<(), AdminError> {
        if self.older_than >= longest_hold {
            return Ok(());
        }
        Err(AdminError::not_forgettable(format!(
            "a holder may hold for {longest_hold:?}, so marks have to be older than that, not than \
             {:?}",
            self.older_than
        )))
    }
}

/// The error of a store with a mark that is no time.
pub(crate) fn not_by_the_clock(resource: &str) -> AdminError {
    AdminError::not_forgettable(format!(
        "tokens do not follow the clock, see the mark of \"{resource}\"; a floor would shut out \
         others"
    ))
}

/// The rows that are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(unnameable_types, reason = "in the sealed part of `Storage`")]
pub enum Rows {
    /// The marks of a store.
    Marks,
    /// The leases of a lock service in its database.
    Leases,
}

/// One transaction of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(unnameable_types, reason = "in the sealed part of `Storage`")]
pub struct Batch {
    pub(crate) forgotten: u64,
    /// Where to go on; `None` at the end.
    pub(crate) last: Option<String>,
}

/// The result of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forgotten {
    /// The number of marks that were forgotten.
    pub marks: u64,
    /// The number of rows of leases, where the database is a lock service, too.
    pub leases: u64,
}

impl<DB: Storage> FencedStore<DB> {
    /// Deletes the marks of resources that were not claimed for so long, and raises the floor of
    /// the store to the greatest of their tokens, in the same transaction. Rows of leases go
    /// likewise, if the lock service is in this database.
    ///
    /// Without a mark a claim at or below the floor is refused as [`FenceError::Stale`], and the
    /// refusal names the floor. So is a holder whose mark was forgotten. A late holder stays shut
    /// out, because its token is not above the floor.
    ///
    /// A mark stays if it is younger; if its token is above what the lock service issued so long
    /// ago, so that one poisoned mark does not lift the floor for all others; if it belongs to
    /// another lock service than the one in place; if an open transaction is fenced by it; and if a
    /// lease of its resource lives in this database.
    ///
    /// Guards of [`FencedLocks`](crate::FencedLocks) keep their marks young. A client that claims
    /// by itself and holds for more than an hour says so before: see
    /// [`state_longest_hold`](Self::state_longest_hold).
    ///
    /// It works in batches of 200, each a transaction of its own, and may run beside claims, and
    /// beside itself.
    ///
    /// # Errors
    /// [`AdminError::NotForgettable`] if the age is less than an hour or than the longest hold, or
    /// if tokens do not follow the clock and no [`below`](Forget::below) was given. It changes
    /// nothing. In Postgres [`NotReady::RightMissing`](crate::NotReady::RightMissing) if the role
    /// may not forget. Otherwise errors of the database. Earlier batches then stay done.
    ///
    /// # Cancel safety
    /// Cancel safe: the present batch is finished in the background.
    pub async fn forget_marks(&self, order: &Forget) -> Result<Forgotten, AdminError> {
        let forgotten = Forgotten {
            marks: self.forget(order, Rows::Marks).await?,
            leases: self.forget(order, Rows::Leases).await?,
        };
        Ok(forgotten)
    }

    async fn forget(&self, order: &Forget, rows: Rows) -> Result<u64, AdminError> {
        let (mut forgotten, mut after) = (0, String::new());
        loop {
            let (store, order, from) = (self.clone(), *order, after);
            let batch = async move {
                DB::forget(&store.access, &store.tx_options, &order, rows, &from).await
            };
            let batch = uninterrupted(self.tasks(), batch).await?;
            counted::forgotten(rows, batch.forgotten);
            forgotten += batch.forgotten;
            match batch.last {
                Some(last) => after = last,
                None => return Ok(forgotten),
            }
        }
    }

    /// States how long a client that [claims](Self::claim) by itself may hold a resource. From now
    /// on no mark is forgotten that is not older than this. Without a statement it is an hour.
    ///
    /// State it once, before the first claim. The store keeps the longest hold of all clients.
    /// [`FencedLocks`](crate::FencedLocks) needs no statement.
    ///
    /// It counts for all marks, and only rises. So a role of an application needs a right of its
    /// own: docs/operations/forgotten-marks.md has the statement that grants it.
    ///
    /// # Errors
    /// [`AdminError::NotForgettable`] for more than 366 days;
    /// [`NotReady::RightMissing`](crate::NotReady::RightMissing) with the statement that grants
    /// the missing right. Otherwise errors of the database.
    ///
    /// # Cancel safety
    /// It is finished in the background.
    pub async fn state_longest_hold(&self, hold: Duration) -> Result<(), AdminError> {
        if hold > LONGEST_HOLD_MAX {
            return Err(AdminError::not_forgettable(format!(
                "{hold:?} is too long a hold: marks would stay for ever, at most 366 days count"
            )));
        }
        let store = self.clone();
        let hold = std::cmp::max(hold, LEAST_AGE);
        let stated = async move { DB::state_longest_hold(&store.access, hold).await };
        Ok(uninterrupted(self.tasks(), stated).await?)
    }

    /// Makes the mark of this grant young again. Returns whether it did: not if the mark shows
    /// another grant, or if an open transaction has locked it.
    ///
    /// # Errors
    /// Those of the database.
    ///
    /// # Cancel safety
    /// It is finished in the background.
    #[doc(hidden)]
    pub async fn refresh(&self, grant: &lock_core::Sequencer) -> Result<bool, FenceError> {
        let (store, grant) = (self.clone(), grant.clone());
        let refresh = async move { DB::refresh(&store.access, &grant).await };
        uninterrupted(self.tasks(), refresh).await
    }
}
