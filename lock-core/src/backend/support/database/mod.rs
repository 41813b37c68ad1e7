//! A lock service in a database: everything but the database itself.
//!
//! A type that is [`InDatabase`] is a [`LockBackend`](crate::backend::LockBackend). It has a client
//! of its [`Database`], which answers the requests of [`Leases`]. There are two kinds of databases:
//!
//! - a database whose server decides about leases, by [`Procedures`]: the client sends their
//!   [`Call`]s and reads the [`Row`]s of their answers;
//! - a database whose client has the rule: the client decides, and reads and writes rows.

mod answers;
mod asking;
mod call;
mod calls;
mod clock;
mod connections;
mod lease_names;
mod listing;
mod procedures;
mod refusal;
mod renewing;
mod row;
mod service;
mod settings;
mod waiters;

use std::{sync::Arc, time::Duration};

pub use self::{
    answers::{Renewal, granted, queued, token},
    asking::{LONGEST_WAIT, time_to_wait},
    call::{AnswerShape, Argument, Call},
    clock::ServerClock,
    connections::{no_answer, take},
    lease_names::LeaseNames,
    procedures::{Procedures, forget_every_minute, only},
    refusal::Refusal,
    row::Row,
    service::{DatabaseService, InDatabase},
    settings::{settings, take_connections},
    waiters::{Place, WaiterKey, Waiters},
};
use super::Tasks;
use crate::{
    Attempt, BoxFuture, Error, FencingToken, Grant, Released, ResourceName, Sequencer,
    backend::{AcquireRequest, AttemptId, AttemptRef, Forced, RenewRequest, Reply},
};

/// A client of a database.
pub trait Database: Send + Sync + Sized + 'static {
    /// A row of an answer.
    type Row: Row;

    /// The tasks on which requests run. They have the runtime, too.
    fn tasks(&self) -> &Tasks;

    /// The names of its leases.
    fn names(&self) -> &LeaseNames;

    /// The longest pause between two looks. `None` while the database wakes the waiters.
    fn longest_pause(&self) -> Option<Duration>;

    /// The work by which the database wakes these waiters, if the database can wake them. The work
    /// runs from the first waiter on.
    fn listen(waiters: Arc<Waiters<Self>>) -> Option<BoxFuture<'static, ()>> {
        drop(waiters);
        None
    }
}

/// The requests about leases that a database answers, with the clauses of
/// [`LockBackend`](crate::backend::LockBackend).
///
/// # Cancel safety
/// A request that has begun comes to its end although its caller goes away. Each request may be
/// sent again.
pub trait Leases: Database {
    /// Looks once for an attempt. With `queue` it takes a place in the queue or keeps it, until the
    /// [time](time_to_wait) of its request is over. Otherwise it leaves the queue.
    fn acquire(
        &self,
        request: &AcquireRequest,
        queue: bool,
    ) -> impl Future<Output = Result<Reply, Error>> + Send;

    /// Looks once at several resources.
    fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> impl Future<Output = Result<Attempt<Vec<Grant>>, Error>> + Send;

    /// Renews some leases. The answers are in the same order. A missing answer counts as
    /// [`Renewal::Busy`].
    fn renew(
        &self,
        leases: &[&RenewRequest],
    ) -> impl Future<Output = Result<Vec<Renewal>, Error>> + Send;

    /// Ends a lease.
    fn release(
        &self,
        lease: &Sequencer,
        tombstone: bool,
    ) -> impl Future<Output = Result<Released, Error>> + Send;

    /// Gives back the hold of one attempt.
    fn release_hold(
        &self,
        lease: &Sequencer,
        attempt: AttemptId,
    ) -> impl Future<Output = Result<Released, Error>> + Send;

    /// Ends an attempt to acquire.
    fn cancel(&self, attempt: &AttemptRef) -> impl Future<Output = Result<(), Error>> + Send;

    /// Ends the lease with this token. If the request is sent again, it ends nothing more, and gets
    /// the same revocation token.
    fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> impl Future<Output = Result<Forced, Error>> + Send;

    /// Lists all leases that are held or waited for, or only one of them. A row has the columns
    /// `resource`, which is the name of the lease, `holder`, which is null if the lease is free,
    /// `token`, `left_ms`, `metadata` and `waiters`.
    fn list(
        &self,
        only: Option<&ResourceName>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, Error>> + Send;

    /// Looks once for these attempts, given by their IDs. With `touch` the look is a sign of life
    /// of all of them. An attempt that is not in the answer is not in the queue.
    fn look(
        &self,
        attempts: &[String],
        touch: bool,
    ) -> impl Future<Output = Result<Vec<(WaiterKey, Place)>, Error>> + Send;
}
