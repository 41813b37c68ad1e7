use std::{fmt, future, ops::DerefMut, time::Duration};

use lock_core::{
    ResourceName, Sequencer,
    backend::{Runtime, support::Tasks},
};

use crate::{
    FenceError, HighWater,
    admin::AdminError,
    forget::{Batch, Forget, Rows},
    jobs::JobRows,
    transaction::begin_request::BeginRequest,
};

/// The place of a [`FencedStore`](crate::FencedStore): a database of sqlx, which is also a
/// [`Dialect`](crate::Dialect), or [`Memory`](crate::Memory). Sealed.
///
/// Claims, fenced transactions, [`FencedLocks`](crate::FencedLocks), jobs and leaders need no more
/// than this of a store.
#[diagnostic::on_unimplemented(
    message = "a store cannot be in `{Self}`",
    note = "name the database: `FencedLocks<sqlx::Postgres>`, or `PgFencedLocks` for short"
)]
pub trait Storage: Sized + fmt::Debug + Send + Sync + 'static {
    /// Its name, for display.
    const KIND: &'static str;

    /// The way to it, such as a pool. Clones lead to the same store.
    type Access: Clone + fmt::Debug + Send + Sync + 'static;

    /// Reads and writes. A transaction derefs to this type.
    type Session: Send;

    /// A session that reads what is committed.
    type Reading: DerefMut<Target = Self::Session> + Send;

    /// An open transaction that is fenced.
    type Tx: OpenTransaction + DerefMut<Target = Self::Session>;

    /// The settings of transactions that go beyond the store rule.
    type TxOptions: Clone + fmt::Debug + Default + Send + Sync + 'static;

    /// Keeps the tables of jobs.
    type Jobs: JobRows<Self>;

    /// How long a claim or a `begin` waits for other transactions of its resource, if the options
    /// set a limit.
    #[must_use]
    fn lock_timeout(_: &Self::TxOptions) -> Option<Duration> {
        None
    }

    /// Raises the mark in a transaction of its own, or finds that it already shows this grant.
    ///
    /// A future that is dropped may leave a connection in an open transaction. Callers therefore
    /// run it through `uninterrupted`.
    fn claim(
        access: &Self::Access,
        options: &Self::TxOptions,
        sequencer: &Sequencer,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Waits until no transaction of this grant is in progress, then checks the mark.
    fn settle(
        access: &Self::Access,
        options: &Self::TxOptions,
        sequencer: &Sequencer,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Begins a transaction that has checked the marks and keeps claims out until it ends. If
    /// the future is dropped, no transaction stays open.
    fn begin(
        access: &Self::Access,
        options: &Self::TxOptions,
        request: &BeginRequest,
    ) -> impl Future<Output = Result<Self::Tx, FenceError>> + Send;

    /// Commits. `Ok` means that everything since the `begin` is committed and fenced.
    fn commit(tx: Self::Tx) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Commits. If the database can be a lock service, the same message then releases this lease,
    /// in a transaction of its own. Returns whether the release was answered.
    fn commit_and_release(
        tx: Self::Tx,
        _lease_name: &str,
        _: &Sequencer,
    ) -> impl Future<Output = Result<bool, FenceError>> + Send {
        async { Self::commit(tx).await.map(|()| false) }
    }

    /// Called before a statement of ours that follows statements of the user. Fails if a statement
    /// was dropped and the session may take its answers for those to the next one.
    #[must_use]
    fn catch_up(
        _: &mut Self::Session,
        _: &dyn Runtime,
    ) -> impl Future<Output = Result<(), FenceError>> + Send {
        future::ready(Ok(()))
    }

    /// Called before the user gets the session of a fenced transaction: if that transaction has
    /// ended without our knowledge, no further statement may get through. A database that cannot
    /// ensure this without waiting does nothing.
    fn seal_if_over(_: &mut Self::Session) {}

    /// A session that reads what is committed now.
    fn read(
        access: &Self::Access,
    ) -> impl Future<Output = Result<Self::Reading, FenceError>> + Send;

    /// The mark of a resource, as this session sees it.
    fn high_water(
        session: &mut Self::Session,
        resource: &ResourceName,
    ) -> impl Future<Output = Result<Option<HighWater>, FenceError>> + Send;

    /// Sets the age of the mark of this grant to zero, in a transaction of its own. It waits for no
    /// open transaction. Returns whether the age was set.
    fn refresh(
        access: &Self::Access,
        grant: &Sequencer,
    ) -> impl Future<Output = Result<bool, FenceError>> + Send;

    /// Forgets the next idle rows, whose names come after this one, in one transaction, which also
    /// raises the floor.
    fn forget(
        access: &Self::Access,
        options: &Self::TxOptions,
        order: &Forget,
        rows: Rows,
        after: &str,
    ) -> impl Future<Output = Result<Batch, AdminError>> + Send;

    /// Keeps marks for at least this long from now on. A time that is shorter than the stated one
    /// changes nothing.
    fn state_longest_hold(
        access: &Self::Access,
        hold: Duration,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;
}

/// A transaction that is rolled back when it is dropped.
#[expect(unnameable_types, reason = "what seals `Storage`")]
pub trait OpenTransaction: Send + 'static {
    /// The tasks that finish its work if a caller goes away.
    fn tasks(&self) -> &Tasks;

    /// Rolls back, and waits until it is done. If the future is dropped, a task goes on with the
    /// rollback.
    fn roll_back(self) -> impl Future<Output = Result<(), FenceError>> + Send;
}
