//! Forgets idle marks, and keeps a floor in their place: [`FencedStore::forget_marks`].
//!
//! The `forget.rs` in the folder of each database carries out one batch; `by_statements.rs` has the
//! parts that MySQL and SQLite share. `fenced_locks/refresh.rs` keeps the marks of living guards.

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

/// The least token of 15 digits. Tokens that follow the clock are greater since 2001.
pub(crate) const LEAST_OF_CLOCK: u64 = 100_000_000_000_000;

impl Forget {
    /// Forgets marks that are older than this, an hour or more. The tokens of the lock service have
    /// to follow the clock, as those of Postgres and SQLite do. The tokens of Redis and Redlock do
    /// not: each of their counters begins at the clock, and then counts by itself.
    pub const fn older_than(age: Duration) -> Self {
        Self {
            older_than: age,
            below: None,
        }
    }

    /// Forgets only marks below this token. This is for a lock service whose tokens are the
    /// revisions of one counter: etcd, ZooKeeper, and the service in memory. Name a token that the
    /// service has just issued. [`FencedLocks::forget_marks`](crate::FencedLocks::forget_marks)
    /// asks the service for one.
    ///
    /// A token that the service has not issued yet would shut out all holders of the service.
    pub const fn below(mut self, issued: FencingToken) -> Self {
        self.below = Some(issued);
        self
    }

    /// The least token that is not forgotten. A holder whose grant is younger than `older_than` has
    /// no token below it.
    pub(crate) fn ceiling(&self, unix_time: Duration) -> u64 {
        let then = unix_time.saturating_sub(self.older_than);
        match self.below {
            None => InitialToken::clock_token(then),
            Some(below) => std::cmp::min(below.get(), InitialToken::clock_token(unix_time)),
        }
    }

    /// Fails if a holder may hold for longer than the age in the order.
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

/// The error of a store with a mark that does not follow the clock.
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
    /// The leases of a lock service that is in the same database.
    Leases,
}

/// The result of one transaction of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(unnameable_types, reason = "in the sealed part of `Storage`")]
pub struct Batch {
    pub(crate) forgotten: u64,
    /// The name after which the next batch begins; `None` at the end.
    pub(crate) last: Option<String>,
}

/// The result of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forgotten {
    /// The number of marks that were forgotten.
    pub marks: u64,
    /// The number of rows of leases that were forgotten, if the database is also a lock service.
    pub leases: u64,
}

impl<DB: Storage> FencedStore<DB> {
    /// Deletes the marks of resources that were not claimed for the age in the order, and raises
    /// the floor of the store to the greatest token of these marks, in the same transaction. Rows
    /// of leases are deleted likewise, if the lock service is in this database.
    ///
    /// For a resource without a mark, a claim at or below the floor is refused as
    /// [`FenceError::Stale`], and the refusal names the floor. A holder whose mark was forgotten is
    /// refused in the same way. A late holder stays shut out, because its token is not above the
    /// floor.
    ///
    /// A mark stays if any of these holds: it is younger; its token is above the tokens that the
    /// lock service issued at that age, so that one poisoned mark does not lift the floor for all
    /// others; it belongs to another lock service than the present one; an open transaction is
    /// fenced by it; or a lease of its resource lives in this database.
    ///
    /// Guards of [`FencedLocks`](crate::FencedLocks) keep their marks young. A client that claims
    /// by itself and holds for more than an hour must state that before its first claim: see
    /// [`state_longest_hold`](Self::state_longest_hold).
    ///
    /// It works in batches, of 200 rows in Postgres and of 1000 in MySQL and SQLite. Each batch is
    /// a transaction of its own. Claims may run at the same time, and several of these calls may,
    /// too.
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
    /// on a mark is forgotten only if it is older than this. If no client states a longest hold, it
    /// is an hour.
    ///
    /// State it once, before the first claim. The store keeps the longest hold of all clients.
    /// Clients that use [`FencedLocks`](crate::FencedLocks) need not state it.
    ///
    /// The longest hold counts for all marks, and only rises. So the role of an application needs a
    /// right of its own: docs/operations/forgotten-marks.md has the statement that grants this
    /// right.
    ///
    /// # Errors
    /// [`AdminError::NotForgettable`] for more than 366 days;
    /// [`NotReady::RightMissing`](crate::NotReady::RightMissing) with the statement that grants
    /// the missing right. Otherwise errors of the database.
    ///
    /// # Cancel safety
    /// The statement is finished in the background.
    pub async fn state_longest_hold(&self, hold: Duration) -> Result<(), AdminError> {
        if hold > LONGEST_HOLD_MAX {
            return Err(AdminError::not_forgettable(format!(
                "a hold of {hold:?} is too long, because marks would stay for ever: state at most \
                 366 days"
            )));
        }
        let store = self.clone();
        let hold = std::cmp::max(hold, LEAST_AGE);
        let stated = async move { DB::state_longest_hold(&store.access, hold).await };
        Ok(uninterrupted(self.tasks(), stated).await?)
    }

    /// Sets the age of the mark of this grant to zero. Returns `false`, and changes nothing, if the
    /// mark shows another grant, or if an open transaction has locked the mark.
    ///
    /// # Errors
    /// Those of the database.
    ///
    /// # Cancel safety
    /// The request is finished in the background.
    #[doc(hidden)]
    pub async fn refresh(&self, grant: &lock_core::Sequencer) -> Result<bool, FenceError> {
        let (store, grant) = (self.clone(), grant.clone());
        let refresh = async move { DB::refresh(&store.access, &grant).await };
        uninterrupted(self.tasks(), refresh).await
    }
}
