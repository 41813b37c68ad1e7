use std::{fmt, pin::Pin, time::Duration};

use crate::{
    Capabilities, Error, FencingToken, Grant, Holder, Lease, Moment, ResourceName, Sequencer, Ttl,
};

/// A boxed future, so that a backend can be chosen by URL at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A lock service: grants leases with fencing tokens.
///
/// This is the contract with *implementors*; users have
/// [`LockManager`](crate::LockManager). Each clause names the conformance case that checks it.
///
/// # Contract
/// 1. **Order** (`order`). A grant has a greater token than every grant of that resource that was
///    returned before its request began, across release, expiry, cancel and reconnect.
/// 2. **One at a time** (`exclusion`). While a lease lives, no other holder's acquire is
///    granted.
/// 3. **Replay** (`replay`). An acquire that is sent again with the same holder while its lease
///    lives returns the same token and the time *left*: no second token, no extension.
/// 4. **Ended is ended** (`ended_acquisition_stays_ended`). After release, or after its lease ran
///    out, an acquire with the same holder is [`ErrorKind::Released`](crate::ErrorKind::Released),
///    for as long as late requests may still arrive (the backend says how long).
/// 5. **Expiry** (`expiry`, `waits_until_expiry`, `waits_by_the_present_lease`). A lease that is
///    not renewed ends within its ttl, and the next acquire is granted without anybody's help.
///    Waiters are woken by the backend.
/// 6. **Renew never creates** (`renew_never_creates`). It extends a living lease of that holder and
///    token, to a full ttl; otherwise [`Renewed::NotHolder`] and nothing changes.
/// 7. **Release is compared** (`release_only_own`). It ends the lease of that holder and token and
///    no other. Sent again, it says [`Released::Released`] again.
/// 8. **Waiting** (`waits_until_release`, `wait_deadline`). Waiting happens inside `acquire`. A
///    release wakes a waiter without its polling; at the deadline the answer is
///    [`Attempt::Held`], and then this attempt holds nothing and waits for nothing.
/// 9. **Cancel** (`cancel_leaves_nothing`, `cancel_is_per_attempt`). An `acquire` future may be
///    dropped at any await. After `cancel` has returned `Ok`, that attempt holds nothing, waits for
///    nothing, and never will, even if its request is still under way. Another attempt of the same
///    holder is not touched: a lease ends only if no other attempt was told of it.
/// 10. **Floor** (`floor`, `implausible_floor`). With a floor the granted token is at least the
///     floor; the counter is raised only if the grant is made. An implausible floor is refused and
///     raises nothing.
/// 11. **Errors** (`refused_input_leaves_nothing`). [`Outcome::NotApplied`](crate::Outcome) means
///     that nothing changed. When that is not certain it is `Unknown`.
/// 12. **Own deadline** (`deadline_counts_from_request`). A lease's deadline is counted from a
///     moment before the request was sent, never later than what the service granted.
///
/// # Cancel safety
/// `acquire` as clause 9 says. The other methods may be dropped at any await; they may or may not
/// have taken effect, and can be sent again.
pub trait LockBackend: fmt::Debug + Send + Sync + 'static {
    /// The kind of lock service, such as `"redis"`: the default issuer, and what errors name.
    fn kind(&self) -> &'static str;

    /// What it promises beyond the contract.
    fn capabilities(&self) -> Capabilities;

    /// Acquires a lease, waiting as long as the request says.
    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>>;

    /// Renews leases, each to its full ttl; one answer per lease, in the same order.
    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>>;

    /// Ends a lease.
    fn release<'a>(&'a self, lease: &'a Sequencer) -> BoxFuture<'a, Result<Released, Error>>;

    /// Ends an attempt to acquire, whatever has become of it.
    fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> BoxFuture<'a, Result<(), Error>>;

    /// Looks at a resource without changing anything.
    fn inspect<'a>(
        &'a self,
        resource: &'a ResourceName,
    ) -> BoxFuture<'a, Result<Inspection, Error>>;
}

/// Contention is a value, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an attempt is granted or it is not"
)]
#[must_use = "an attempt may not have been granted"]
pub enum Attempt<T> {
    /// The lease is ours.
    Granted(T),
    /// Somebody else has it.
    Held {
        /// The time after which the present lease ends unless it is renewed.
        retry_after: Duration,
    },
}

impl<T> Attempt<T> {
    /// The grant, if there is one.
    #[must_use]
    pub fn granted(self) -> Option<T> {
        match self {
            Self::Granted(grant) => Some(grant),
            Self::Held { .. } => None,
        }
    }

    /// Turns the grant into something else.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Attempt<U> {
        match self {
            Self::Granted(grant) => Attempt::Granted(f(grant)),
            Self::Held { retry_after } => Attempt::Held { retry_after },
        }
    }
}

/// A request to acquire a lease. All that identifies it exists before the first byte is sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcquireRequest {
    /// Who asks for what, and which attempt this is.
    pub attempt: AttemptRef,
    /// The length of the lease.
    pub ttl: Ttl,
    /// How long to wait.
    pub wait: Wait,
    /// The least token that is of use: the store has seen more than the lock service remembers.
    pub floor: Option<FencingToken>,
    /// Whether somebody is going to renew the lease. If not, it must have its full length at once.
    pub upkeep: Upkeep,
}

impl AcquireRequest {
    /// A request without waiting, floor or upkeep.
    #[must_use]
    pub const fn new(attempt: AttemptRef, ttl: Ttl) -> Self {
        Self {
            attempt,
            ttl,
            wait: Wait::Never,
            floor: None,
            upkeep: Upkeep::None,
        }
    }
}

/// One attempt of one acquisition. A holder may try again; what is cancelled is an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AttemptRef {
    /// What is to be held.
    pub resource: ResourceName,
    /// Who is to hold it: the identity of the acquisition.
    pub holder: Holder,
    /// Which attempt of that acquisition.
    pub id: AttemptId,
}

impl AttemptRef {
    /// A fresh attempt of an acquisition.
    #[must_use]
    pub fn new(resource: ResourceName, holder: Holder) -> Self {
        Self {
            resource,
            holder,
            id: AttemptId(rand::random()),
        }
    }
}

/// A random number that tells the attempts of one acquisition apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptId(u64);

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// How long an acquire waits for a resource that somebody else holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// Not at all: one look.
    Never,
    /// Until a moment of the clock that the backend was made with.
    Until(Moment),
    /// Without bound.
    Forever,
}

/// Whether a lease is going to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Upkeep {
    /// A watchdog renews it, the first time by [`Lease::renew_by`].
    Watchdog,
    /// Nobody does, or a client that cannot be relied on.
    None,
}

/// A request to renew one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a lease and a length, no more")]
pub struct RenewRequest {
    /// The lease.
    pub sequencer: Sequencer,
    /// Its new length, counted from now.
    pub ttl: Ttl,
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the lease was ours or it was not")]
pub enum Renewed {
    /// The lease goes on.
    Renewed(Lease),
    /// This holder and token have no living lease; nothing changed.
    NotHolder,
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the lease was ours or it was not")]
pub enum Released {
    /// The lease was ours and has ended.
    Released,
    /// The lease had already ended, or is another holder's; nothing changed.
    NotHolder,
}

/// What a look at a resource shows. It is old when it arrives, and it holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The present holder, if there is one.
    pub holder: Option<HolderView>,
}

impl Inspection {
    /// Puts an inspection together.
    #[must_use]
    pub const fn new(holder: Option<HolderView>) -> Self {
        Self { holder }
    }
}

/// What others may see of a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderView {
    /// [`Holder::fingerprint`], never the holder itself.
    pub fingerprint: String,
    /// Its token.
    pub token: FencingToken,
    /// The time left.
    pub remaining: Duration,
}

impl HolderView {
    /// What others may see of this holder.
    #[must_use]
    pub fn new(holder: Holder, token: FencingToken, remaining: Duration) -> Self {
        Self::of_digest(&holder.digest(), token, remaining)
    }

    /// The same for a backend that knows no more of the holder than [`Holder::digest`].
    #[must_use]
    pub fn of_digest(digest: &str, token: FencingToken, remaining: Duration) -> Self {
        let fingerprint = digest.chars().take(Holder::FINGERPRINT_LEN).collect();
        Self {
            fingerprint,
            token,
            remaining,
        }
    }
}
