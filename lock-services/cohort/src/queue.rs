use std::{num::NonZeroU32, sync::Arc};

use tokio::sync::Notify;

use super::{
    pending_release::{Ending, LastRelease, PendingRelease, PendingReleases},
    shared_lease::{Asking, CurrentHolder, SharedLease},
    waiters::{Answer, Arrival, Waiter, Waiters},
};
use lock_core::{
    Attempt, AttemptId, Error, ErrorKind, Grant, Holder, Moment, Outcome, Renewed, Sequencer, Wait,
    support::LATE_GRANTS_MAX,
};

/// One resource: its waiters in this process, and the lease that the process has at the service.
///
/// A state machine without time or tasks. Its driver asks it for the next step, and is woken when
/// there may be another one.
#[derive(Debug)]
pub(super) struct Queue {
    waiters: Waiters,
    phase: Phase,
    pub(super) pending: PendingReleases,
    begun: Begun,
    /// How many shared leases in a row were over when their grant arrived.
    late: u32,
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Asking(Asking),
    Held(SharedLease, CurrentHolder),
}

/// The end of a shared lease that its release has begun.
#[derive(Debug, Default)]
enum Begun {
    #[default]
    No,
    /// The release is about to send it.
    ByRelease,
    /// The driver has to complete it.
    Left(Ending),
}

/// What the driver has to do next.
#[derive(Debug)]
pub(super) enum Step {
    /// Complete this end.
    Complete(Ending),
    /// End this shared lease.
    End(PendingRelease),
    /// End these, then ask for this shared lease.
    Ask(Asking, Vec<PendingRelease>),
    /// Look again at this moment, or when woken.
    Watch(Moment),
    /// Nothing is left.
    Done,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            waiters: Waiters::default(),
            phase: Phase::default(),
            pending: PendingReleases::default(),
            begun: Begun::default(),
            late: 0,
            wake: Arc::default(),
        }
    }

    /// Whether nobody waits, asks or holds here.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.waiters.is_empty()
    }

    pub(super) const fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Notified when the driver may have something to do.
    pub(super) const fn wake(&self) -> &Arc<Notify> {
        &self.wake
    }

    /// The shared lease, and the task that has the lock.
    pub(super) const fn held(&self) -> Option<(&SharedLease, &CurrentHolder)> {
        match &self.phase {
            Phase::Held(lease, current) => Some((lease, current)),
            Phase::Idle | Phase::Asking(_) => None,
        }
    }

    /// The same, to change it.
    pub(super) const fn held_mut(&mut self) -> Option<(&mut SharedLease, &CurrentHolder)> {
        match &mut self.phase {
            Phase::Held(lease, current) => Some((lease, current)),
            Phase::Idle | Phase::Asking(_) => None,
        }
    }

    pub(super) const fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking(_))
    }

    pub(super) fn is_asking_for(&self, holder: Holder) -> bool {
        matches!(&self.phase, Phase::Asking(asking) if asking.holder() == holder)
    }

    pub(super) fn enqueue(&mut self, waiter: Waiter) {
        self.waiters.push(waiter);
        self.wake.notify_one();
    }

    /// The answer to an attempt of the current holder, which relies on the lock from here on.
    pub(super) fn replay(&mut self, holder: Holder, attempt: AttemptId) -> Option<Grant> {
        match &mut self.phase {
            Phase::Held(lease, current) if current.holder == holder => {
                if !current.attempts.contains(&attempt) {
                    current.attempts.push(attempt);
                }
                Some(Grant::new(current.token, lease.lease))
            }
            _ => None,
        }
    }

    /// What the driver has to do next. If waiters have no shared lease, it begins to ask for one.
    pub(super) fn next_step(&mut self, passes: NonZeroU32, next: Arrival, now: Moment) -> Step {
        let forget = self.pending.forget_old(now);
        match std::mem::take(&mut self.begun) {
            Begun::Left(ending) => return Step::Complete(ending),
            Begun::ByRelease => {
                self.begun = Begun::ByRelease;
                return Step::Watch(Moment::NEVER);
            }
            Begun::No => {}
        }
        if let (Phase::Idle, Some(head)) = (&self.phase, self.waiters.head()) {
            let waiting = u32::try_from(self.waiters.len()).unwrap_or(u32::MAX);
            let reserve = NonZeroU32::new(waiting).unwrap_or(NonZeroU32::MIN);
            let asking = Asking::for_head(head, std::cmp::min(reserve, passes), next);
            self.phase = Phase::Asking(asking.clone());
            return Step::Ask(asking, self.pending.all());
        }
        if let Some(pending) = self.pending.due() {
            return Step::End(pending);
        }
        match &self.phase {
            Phase::Held(lease, _) => Step::Watch(lease.lease.deadline()),
            Phase::Idle if self.pending.is_empty() => Step::Done,
            Phase::Idle | Phase::Asking(_) => Step::Watch(forget),
        }
    }

    /// The service has answered the request for a shared lease.
    pub(super) fn answered(&mut self, asked: Holder, answer: Answer, now: Moment) {
        match std::mem::take(&mut self.phase) {
            Phase::Asking(asking) if asking.holder() == asked => match answer {
                Ok(Attempt::Granted(grant)) => self.begin(asking, grant, now),
                Ok(Attempt::Held { .. }) => self.tell_who_asked(&asking, &answer),
                Err(error) => self.refused(&asking, error, now),
            },
            other => self.phase = other,
        }
        self.wake.notify_one();
    }

    /// The current holder has finished: passes the lock on, or ends the shared lease. In the second
    /// case the caller begins the end, and leaves it to the driver.
    pub(super) fn release(&mut self, lease: &Sequencer, now: Moment) {
        if let Phase::Held(shared, _) = std::mem::take(&mut self.phase)
            && !self.hand_on(shared, Some(lease), now)
        {
            self.begun = Begun::ByRelease;
        }
    }

    /// A release has begun an end, and leaves the rest to the driver.
    pub(super) fn complete(&mut self, ending: Ending) {
        self.begun = Begun::Left(ending);
        self.wake.notify_one();
    }

    /// The service has answered the end of a shared lease, or has not.
    pub(super) fn ended(
        &mut self,
        pending: &PendingRelease,
        answer: &super::pending_release::Answer,
    ) {
        if !matches!(&self.begun, Begun::Left(other) if other.pending.attempt != pending.attempt) {
            self.begun = Begun::No;
        }
        self.pending.answered(pending, answer);
        self.wake.notify_one();
    }

    /// An attempt of the current holder gives the lock up. If no other attempt relies on it, the
    /// lock is passed on or the shared lease is ended. That is no end of the acquisition: another
    /// attempt may still come.
    pub(super) fn cancel_held(&mut self, holder: Holder, attempt: AttemptId, now: Moment) {
        match std::mem::take(&mut self.phase) {
            Phase::Held(lease, mut current) if current.holder == holder => {
                current.attempts.retain(|other| *other != attempt);
                if current.attempts.is_empty() {
                    self.hand_on(lease, None, now);
                } else {
                    self.phase = Phase::Held(lease, current);
                }
            }
            other => self.phase = other,
        }
    }

    /// Removes the waiter with this arrival. If nobody is left, the request for a shared lease is
    /// abandoned.
    pub(super) fn leave(&mut self, arrival: Arrival, now: Moment) {
        if self.waiters.remove(arrival).is_some() {
            self.has_left(now);
        }
    }

    /// The same by attempt; false if the attempt is not waiting.
    pub(super) fn cancel_waiting(
        &mut self,
        holder: Holder,
        attempt: AttemptId,
        now: Moment,
    ) -> bool {
        let left = self.waiters.remove_attempt(holder, attempt).is_some();
        if left {
            self.has_left(now);
        }
        left
    }

    /// A renewal of a shared lease was answered. Waiters before `came_before` were in the queue
    /// when it was sent. Returns the holder that has lost the lock, if any.
    pub(super) fn renewed(
        &mut self,
        holder: Holder,
        answer: Renewed,
        came_before: Arrival,
        now: Moment,
    ) -> Option<CurrentHolder> {
        match (&mut self.phase, answer) {
            (Phase::Held(present, _), _) if present.attempt.holder != holder => None,
            (Phase::Held(present, _), Renewed::Renewed(lease)) => {
                present.renewed(lease, came_before);
                None
            }
            (Phase::Held(..), Renewed::NotHolder) => self.lose(now),
            (Phase::Idle | Phase::Asking(_), _) => None,
        }
    }

    /// Ends the shared lease if it has run out. Returns the holder that has lost the lock, if any.
    pub(super) fn expire(&mut self, now: Moment) -> Option<CurrentHolder> {
        let (lease, _) = self.held()?;
        if lease.is_over(now) {
            self.lose(now)
        } else {
            None
        }
    }

    /// The shared lease is gone, and with it the remaining tokens. Returns the holder that has lost
    /// it.
    pub(super) fn lose(&mut self, now: Moment) -> Option<CurrentHolder> {
        match std::mem::take(&mut self.phase) {
            Phase::Held(lease, current) => {
                self.end(lease, None, now);
                Some(current)
            }
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// Tells all waiters that nobody drives this queue any more.
    pub(super) fn abandoned(mut self, error: &Error) {
        while let Some(waiter) = self.waiters.pop() {
            waiter.tell(Err(error.clone()));
        }
    }

    fn begin(&mut self, asking: Asking, grant: Grant, now: Moment) {
        let lease = SharedLease::new(&asking, grant, now);
        if lease.is_over(now) {
            self.end(lease, None, now);
            self.was_late(&asking);
        } else {
            self.late = 0;
            self.hand_on(lease, None, now);
        }
    }

    /// Passes the lock to the head of the queue if it may have it. Otherwise ends the shared lease,
    /// with the release of its last holder if there was one; then this is false.
    fn hand_on(
        &mut self,
        mut lease: SharedLease,
        released: Option<&Sequencer>,
        now: Moment,
    ) -> bool {
        let Some(current) = self.pass(&mut lease, now) else {
            let release = released.map(|current| {
                Arc::new(LastRelease {
                    shared: lease.sequencer(current),
                    current: current.clone(),
                    all_answered: lease.all_answered,
                })
            });
            self.end(lease, release, now);
            return false;
        };
        self.phase = Phase::Held(lease, current);
        true
    }

    fn pass(&mut self, lease: &mut SharedLease, now: Moment) -> Option<CurrentHolder> {
        loop {
            let head = self.waiters.head()?;
            if !lease.may_pass_to(head, now) {
                return None;
            }
            let metadata = head.request.metadata.clone();
            let (holder, grant) = (head.holder(), lease.grant_to(head)?);
            let mut attempts = Vec::new();
            for waiter in self.waiters.remove_all_of(holder) {
                let id = waiter.request.attempt.id;
                if waiter.tell(Ok(Attempt::Granted(grant))) {
                    attempts.push(id);
                }
            }
            if !attempts.is_empty() {
                return Some(CurrentHolder {
                    holder,
                    token: grant.token,
                    metadata,
                    attempts,
                });
            }
        }
    }

    /// The shared lease is over for us and has to be ended at the service.
    fn end(&mut self, lease: SharedLease, release: Option<Arc<LastRelease>>, now: Moment) {
        self.pending.add(PendingRelease {
            until: now + lease.longest.get(),
            attempt: lease.attempt,
            release,
            again: false,
        });
        self.wake.notify_one();
    }

    /// The service did not grant the shared lease.
    fn refused(&mut self, asking: &Asking, error: Error, now: Moment) {
        if error.outcome() == Outcome::Unknown {
            self.give_up(asking, now);
        }
        match error.kind() {
            // It ran out before we heard of it: nobody here has ended it.
            ErrorKind::Released => self.was_late(asking),
            // The terms of the asker are wrong; the others may have better ones.
            ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::QueueFull => {
                self.tell_asker(asking, Err(error));
            }
            _ => self.tell_who_asked(asking, &Err(error)),
        }
    }

    fn was_late(&mut self, asking: &Asking) {
        self.late += 1;
        if self.late == LATE_GRANTS_MAX {
            self.late = 0;
            let error = Error::too_late();
            self.tell_asker(asking, Err(error));
        }
    }

    /// The request for a shared lease may be granted, and nobody wants it.
    fn give_up(&mut self, asking: &Asking, now: Moment) {
        self.pending.add(PendingRelease {
            attempt: asking.request.attempt.clone(),
            release: None,
            again: false,
            until: now + asking.request.ttl.get(),
        });
    }

    fn has_left(&mut self, now: Moment) {
        match std::mem::take(&mut self.phase) {
            Phase::Asking(asking) if self.waiters.is_empty() => {
                self.give_up(&asking, now);
                self.wake.notify_one();
            }
            other => self.phase = other,
        }
    }

    /// Gives the answer to the waiter on whose terms the service was asked. If that one has left
    /// the queue, nobody gets the answer: the next head asks on its own terms.
    fn tell_asker(&mut self, asking: &Asking, answer: Answer) {
        self.tell_head_if(|head| head.arrival == asking.asker, answer);
    }

    fn tell_head_if(&mut self, is_meant: impl Fn(&Waiter) -> bool, answer: Answer) {
        if self.waiters.head().is_some_and(is_meant)
            && let Some(head) = self.waiters.pop()
        {
            head.tell(answer);
        }
    }

    /// Gives the answer to every waiter that the service was asked for. The answer to a single look
    /// is not given to waiters that wait: the next head asks on its own terms.
    fn tell_who_asked(&mut self, asking: &Asking, answer: &Answer) {
        if asking.request.wait == Wait::Never {
            let looks = |head: &Waiter| {
                head.request.wait == Wait::Never && head.arrival < asking.came_before
            };
            self.tell_head_if(looks, answer.clone());
            return;
        }
        for waiter in self.waiters.remove_before(asking.came_before) {
            waiter.tell(answer.clone());
        }
    }
}
