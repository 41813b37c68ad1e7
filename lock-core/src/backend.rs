//! The interface for implementors of a lock service or of a store. Users do not need it.

pub(crate) mod answer;
mod attempt_id;
mod boxed_requests;
mod connect_options;
mod lease_settings;
pub mod metric;
mod request;
mod service;
pub(crate) mod store_side;
pub mod support;

use std::{
    borrow::Cow,
    fmt,
    future::{Ready, pending, ready},
    pin::pin,
    sync::Arc,
};

pub use self::{
    answer::{Forced, Renewed},
    attempt_id::{AttemptId, InvalidAttemptId},
    boxed_requests::BoxedRequests,
    connect_options::ConnectOptions,
    lease_settings::{AcquiresLeases, LeaseSettings, Patience},
    request::{AcquireRequest, AttemptRef, RenewRequest, Upkeep, Wait},
    service::LockService,
    store_side::StoreSide,
};
#[cfg(feature = "test-util")]
#[doc(hidden)]
pub use crate::acquisition::{Decision, Decisions, Rebase, Record};
use crate::{
    Attempt, Capabilities, Error, ErrorKind, FencingToken, Inspection, Listed, Released,
    ResourceName, Sequencer, acquisition,
};
pub use crate::{
    acquisition::{
        Acquisition, Answer, Bounds, Ended, Event, Failure, Reply, Request, Requests, Sharing,
        Shutdown, Step, Terms, Wake, WakeUps, repeat, run,
    },
    boxed::BoxFuture,
    lease::{Grant, Lease},
    manager::{Candidate, InTurn, Single, TermGuard, Together, lead_resource},
    retry_policy::Pauses,
    runtime::{Moment, Runtime, Timeout, TokioRuntime},
};

/// A lock service: grants leases with fencing tokens.
///
/// This is the contract with *implementors*; users have [`LockManager`](crate::LockManager). Each
/// clause names the conformance case that checks it. Methods are written as `async fn`. Behind a
/// pointer a lock service is a [`LockService`], which names operation, kind and resource in errors.
///
/// # Contract
/// 1. **Order** (`order`). A grant has a greater token than every grant of that resource that was
///    returned before its request began, across release, expiry, cancel and reconnect.
/// 2. **One at a time** (`exclusion`). While a lease lives, no other holder's acquire is
///    granted.
/// 3. **Replay** (`replay`). An acquire that is sent again with the same holder while its lease
///    lives returns the same token and the time *left*: no second token, no extension.
/// 4. **Ended is ended** (`ended_acquisition_stays_ended`, `a_holder_may_acquire_other_resources`).
///    After release, or after its lease ran out, an acquire of that resource with the same holder
///    fails with [`ErrorKind::Released`], for as long as late requests may still arrive (the
///    backend says how long). A release without a tombstone need not be remembered.
/// 5. **Expiry** (`expiry`, `waits_until_expiry`, `waits_by_the_present_lease`). A lease that is
///    not renewed ends within its ttl, and the next look is granted without any other request.
/// 6. **Renew never creates** (`renew_never_creates`, `a_renewal_shortens_nothing`). A renewal
///    extends a living lease of that holder and token to a full ttl from now. Otherwise it answers
///    [`Renewed::NotHolder`] and nothing changes. A renewal never brings the end of a lease nearer
///    than the grant or another renewal has promised, because others may rely on a longer ttl.
/// 7. **Release is compared** (`release_only_own`). A release ends the lease of that holder and
///    token and no other. If it is sent again with a tombstone, it answers [`Released::Released`]
///    again.
/// 8. **Waiting** (`waits_until_release`, `wait_deadline`, `a_doubled_wake_up_serves_once`,
///    `an_early_wake_up_serves_no_one`, `an_overheard_wake_up_serves_its_own`). A look with `queue`
///    takes a place, or keeps the one that the attempt has. It answers [`Reply::Queued`] while
///    another holder has the lease. A release wakes the next waiter, or the waiter looks again by
///    itself, after the time that its last answer gave. [`Wake::Look`] and [`Wake::Offered`] give
///    nothing by themselves: they may come twice, too early, or to the wrong attempt. A look
///    without `queue` leaves the queue and answers [`Reply::Held`], or it answers
///    [`Reply::Queued`], and the attempt is cancelled.
/// 9. **Cancel** (`cancel_leaves_nothing`, `cancel_is_per_attempt`). A request may be dropped at
///    any await. After `cancel` has returned `Ok`, that attempt holds nothing, waits for nothing,
///    and never will, even if its request is still under way. Another attempt of the same holder is
///    not touched: a lease ends only if no other attempt knows of it. The acquisition goes on, and
///    a further attempt may be granted, unless a watchdog kept the lease up.
/// 10. **Floor** (`floor`, `implausible_floor`). With a floor the granted token is at least the
///     floor; the counter is raised only if the grant is made. An implausible floor is refused and
///     raises nothing.
/// 11. **Errors** (`refused_input_leaves_nothing`). [`Error::not_applied`] means that nothing
///     changed. When that is not certain, such as after a timeout, the error is [`Error::unknown`].
/// 12. **Own deadline** (`deadline_counts_from_request`,
///     `a_lease_that_was_waited_for_is_not_short`). A lease's deadline is counted from a moment
///     before the request was sent. So it is never later than the end of the lease at the service.
///     A waiter gets at least half of the ttl.
///
/// ## Extensions
/// A backend keeps the following clauses if it claims them in [`Capabilities::extensions`]. It
/// never gets a request with options of an extension that it does not claim. Methods of an
/// extension that it does not claim answer [`ErrorKind::Unsupported`]
/// (`an_extension_that_is_not_claimed_is_unsupported`).
///
/// 13. **Metadata** (`metadata_is_shown`). An inspection shows the note of the present holder.
/// 14. **Together** (`together_is_all_or_none`, `together_is_replayed`, `together_compares_places`,
///     `together_names_each_once`, `together_is_cancelled_one_by_one`). Either every resource is
///     granted, each with a token of its own, or nothing has changed. No resource may be named
///     twice. While anybody else holds one of them the answer is [`Attempt::Held`]; queued waiters
///     are bypassed. If the request is sent again, it returns the same grant. Each lease is
///     renewed, released and cancelled by itself. Names with a common `{tag}` are always kept in
///     one place.
/// 15. **Queue limit** (`queue_limit`). An acquire that would have to wait fails at once with
///     [`ErrorKind::QueueFull`] if as many acquisitions as it allows are waiting already. An
///     acquire that does not wait gets [`Attempt::Held`].
/// 16. **Holds** (`holds_are_given_back_one_by_one`, `a_hold_is_compared`,
///     `a_renewal_shortens_no_hold`, `holds_are_lost_together`). Each attempt that got the lease in
///     an answer has a hold on it; such attempts are not [`Upkeep::Watchdog`]. The lease ends when
///     its last hold is given back. The acquisition does not end: its holder may acquire again and
///     gets a greater token. A late request of an attempt that gave its hold back gains nothing.
/// 17. **Force** (`force_release_revokes`, `force_release_hands_on`). A forced release ends the
///     lease with that token. To its holder this looks as if the lease had run out. It draws a
///     token that is greater than the token of that lease, and less than any token that is granted
///     later.
/// 18. **List** (`list_shows_what_is_held`). A list has every resource that is held or waited for
///     during the whole call, and none that is neither. For each resource it has the result of an
///     inspection.
///
/// # Cancel safety
/// The future of each method may be dropped at any await. The request may or may not have taken
/// effect, and can be sent again.
pub trait LockBackend: fmt::Debug + Send + Sync + 'static {
    /// The kind of lock service, such as `"redis"`: the default issuer, and the name in errors.
    fn kind(&self) -> &'static str;

    /// The promises of this backend beyond those of each backend.
    fn capabilities(&self) -> Capabilities;

    /// The runtime whose moments the ends of waits and of leases are.
    fn runtime(&self) -> Arc<dyn Runtime>;

    /// The requests of one attempt to acquire, until they are dropped. Nothing is sent yet.
    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + Send + 'a;

    /// Renews leases, each to its full ttl. Returns one answer for each lease, in the same order.
    fn renew(
        &self,
        leases: &[RenewRequest],
    ) -> impl Future<Output = Vec<Result<Renewed, Error>>> + Send;

    /// Ends a lease. If `tombstone` is false, no late request of the acquisition can arrive. Then a
    /// service need not keep a tombstone for clause 4, and may answer a copy of the release with
    /// [`Released::NotHolder`].
    fn release(
        &self,
        lease: &Sequencer,
        tombstone: bool,
    ) -> impl Future<Output = Result<Released, Error>> + Send;

    /// Ends an attempt to acquire, whatever its state.
    fn cancel(&self, attempt: &AttemptRef) -> impl Future<Output = Result<(), Error>> + Send;

    /// Looks at a resource without changing anything.
    fn inspect(
        &self,
        resource: &ResourceName,
    ) -> impl Future<Output = Result<Inspection, Error>> + Send;

    /// Gives back the hold of one attempt. The lease ends when no other attempt of the same holder
    /// has a hold on it, because an acquisition may be held several times.
    ///
    /// If the request is sent again, it gets the same answer. Unlike
    /// [`release`](LockBackend::release) it does not end the acquisition: the holder may acquire
    /// again, and gets another token.
    fn release_hold(
        &self,
        lease: &Sequencer,
        attempt: AttemptId,
    ) -> impl Future<Output = Result<Released, Error>> + Send {
        let _ = (lease, attempt);
        unsupported()
    }

    /// Ends the lease with this token, whatever its holder, and hands the resource on.
    ///
    /// If there is no answer, this method repeats the request itself, because only this call can
    /// know which lease it ended. A second call ends nothing more. It returns [`Forced::NotHeld`],
    /// or the same revocation token.
    fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> impl Future<Output = Result<Forced, Error>> + Send {
        let _ = (resource, token);
        unsupported()
    }

    /// Everything that is held or waited for, in no order. Resources that change during the call
    /// may be missing.
    fn list(&self) -> impl Future<Output = Result<Vec<Listed>, Error>> + Send {
        unsupported()
    }

    /// Acquires several resources at once, each with a token of its own, or none of them. Looks
    /// once, does not queue, and ignores `wait`.
    ///
    /// All requests must have the same holder and attempt, and different resources. The grants are
    /// in the order of the requests.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] before anything is sent if the resources cannot be acquired at
    /// once, because the service keeps them in different places.
    fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> impl Future<Output = Result<Attempt<Vec<Grant>>, Error>> + Send {
        let _ = requests;
        unsupported()
    }

    /// The number of the part of the service that keeps this resource.
    ///
    /// Parts fail independently: a batch should only contain resources of one part.
    fn part_of(&self, resource: &ResourceName) -> u16 {
        let _ = resource;
        0
    }

    /// The name of the lease of this resource inside the service. A store in the same database
    /// releases the lease by this name.
    fn lease_name<'a>(&self, resource: &'a ResourceName) -> Cow<'a, str> {
        resource.as_str().into()
    }
}

/// Methods of every [`LockBackend`], because the decisions are the same for all.
pub trait LockBackendExt: LockBackend {
    /// Acquires a lease, waiting as long as the request says.
    ///
    /// # Errors
    /// Those of the lock service, with the outcome of the whole attempt.
    ///
    /// # Cancel safety
    /// When the future is dropped, and after an error whose outcome is unknown, the attempt has to
    /// be [cancelled](LockBackend::cancel). A [`LockManager`](crate::LockManager) does so by
    /// itself.
    fn acquire(
        &self,
        request: &AcquireRequest,
    ) -> impl Future<Output = Result<Attempt<Grant>, Error>> + Send {
        async {
            let mut attempt = Acquisition::new(Terms::of(request));
            let (requests, runtime) = (self.requests(request), self.runtime());
            let forever = pin!(pending());
            let ended = acquisition::acquire(&mut attempt, &requests, &*runtime, forever).await;
            ended.attempt()
        }
    }
}

impl<B: LockBackend + ?Sized> LockBackendExt for B {}

/// The answer of a method that the backend does not claim.
fn unsupported<T>() -> Ready<Result<T, Error>> {
    let error = Error::not_applied(ErrorKind::Unsupported);
    ready(Err(error.because("this lock service does not have it")))
}
