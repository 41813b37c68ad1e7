use std::num::NonZeroU32;

use super::waiters::{Arrival, Waiter};
use lock_core::{
    AcquireRequest, AttemptId, AttemptRef, FencingToken, Grant, Holder, Lease, Metadata, Moment,
    Sequencer, Ttl, Wait,
};

/// A request of the process for a shared lease.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) request: AcquireRequest,
    /// The waiter whose terms it has. It may have left the queue since.
    pub(super) asker: Arrival,
    /// Every waiter before this arrival was in the queue before the request was sent.
    pub(super) came_before: Arrival,
}

/// What the process has at the service: one lease, and tokens to hand out while it lives.
#[derive(Debug)]
pub(super) struct SharedLease {
    /// An acquisition by the process. Its holder is a nonce that no task is told.
    pub(super) attempt: AttemptRef,
    /// The longest that the service was ever asked to keep it for, with its acquire or a renewal.
    pub(super) longest: Ttl,
    pub(super) first: FencingToken,
    pub(super) lease: Lease,
    /// Whether the process had to wait for it.
    waited: bool,
    /// Whether no late request of it can arrive.
    pub(super) all_answered: bool,
    /// The next token, and how many are left, itself included.
    rest: Option<(FencingToken, NonZeroU32)>,
    /// Every waiter before this arrival was in the queue before the lease's last answered request
    /// was sent. So it began before anybody else can have got a greater token than those left here.
    came_before: Arrival,
    /// When other processes have waited long enough: the lock is only passed on before this moment.
    pass_before: Moment,
}

/// The task that has the lock now.
#[derive(Debug)]
pub(super) struct CurrentHolder {
    pub(super) holder: Holder,
    pub(super) token: FencingToken,
    pub(super) metadata: Option<Metadata>,
    /// The attempts that were told of it. It is cancelled when none is left.
    pub(super) attempts: Vec<AttemptId>,
}

/// A shared lease is passed on in this fraction of its ttl: the first quarter.
const PASSING_SHARE: u32 = 4;

impl Asking {
    /// A request for a shared lease, on the terms of the waiter at the head.
    pub(super) fn for_head(head: &Waiter, reserve: NonZeroU32, came_before: Arrival) -> Self {
        let mut request = head.request.clone();
        request.attempt = AttemptRef::new(request.attempt.resource, Holder::random());
        request.reserve = reserve;
        request.claim = None; // of this holder, who is nobody's
        if request.wait != Wait::Never {
            // The queue waits for longer than its head does.
            request.wait = Wait::Forever;
        }
        Self {
            request,
            asker: head.arrival,
            came_before,
        }
    }

    /// The holder of the shared lease that is asked for.
    pub(super) const fn holder(&self) -> Holder {
        self.request.attempt.holder
    }
}

impl SharedLease {
    pub(super) fn new(asking: &Asking, grant: Grant, now: Moment) -> Self {
        let ttl = asking.request.ttl;
        Self {
            attempt: asking.request.attempt.clone(),
            longest: ttl,
            first: grant.token,
            lease: grant.lease,
            waited: grant.waited,
            all_answered: grant.all_answered,
            rest: NonZeroU32::new(grant.reserved).map(|left| (grant.token, left)),
            came_before: asking.came_before,
            pass_before: now + ttl.get() / PASSING_SHARE,
        }
    }

    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.lease.deadline() <= now
    }

    /// Whether this waiter may have the lock next.
    pub(super) fn may_pass_to(&self, waiter: &Waiter, now: Moment) -> bool {
        self.rest.is_some()
            && waiter.arrival < self.came_before
            && now < self.pass_before
            && !self.is_over(now)
            // Without renewal, a lease must end within the ttl that its holder asked for.
            && self.lease.deadline() <= now + waiter.request.ttl.get()
    }

    /// A grant for this waiter, with an unused token of the reserve.
    pub(super) fn grant_to(&mut self, waiter: &Waiter) -> Option<Grant> {
        let (token, left) = self.rest?;
        self.rest = token.next().zip(NonZeroU32::new(left.get() - 1));
        let grant = Grant::new(token, self.lease);
        Some(if self.waited || waiter.behind {
            grant.after_waiting()
        } else {
            grant
        })
    }

    /// Nobody else in this process gets a part of it.
    pub(super) const fn stop_passing(&mut self) {
        self.rest = None;
    }

    /// A renewal is sent, which the service may follow whether or not its answer arrives.
    pub(super) fn renewing(&mut self, ttl: Ttl) {
        self.longest = std::cmp::max(self.longest, ttl);
    }

    /// A renewal was answered. Waiters before `came_before` were in the queue when it was sent.
    pub(super) fn renewed(&mut self, lease: Lease, came_before: Arrival) {
        self.came_before = std::cmp::max(self.came_before, came_before);
        if lease.deadline() > self.lease.deadline() {
            self.lease = lease;
        }
    }

    /// The sequencer for renewing or releasing it at the service, with the issuer of its present
    /// holder.
    pub(super) fn sequencer(&self, current: &Sequencer) -> Sequencer {
        let AttemptRef {
            resource, holder, ..
        } = &self.attempt;
        Sequencer::new(
            current.issuer().clone(),
            resource.clone(),
            self.first,
            *holder,
        )
    }
}

impl CurrentHolder {
    pub(super) fn is(&self, lease: &Sequencer) -> bool {
        self.holder == lease.holder() && self.token == lease.token()
    }
}
