use std::{collections::HashSet, num::NonZeroU32, time::Duration};

use futures_util::FutureExt;

use super::super::{Entry, Place, Queues, Release, Renewal, SharedRenewal, Step};
use crate::{
    pending_release::{Ending, PendingRelease},
    shared_lease::Asking,
    waiters::Answer,
};
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, Error, ErrorKind, FencingToken, Grant, Holder, Issuer,
    Lease, Moment, Released, RenewRequest, Renewed, ResourceName, Sequencer, Ttl, Upkeep, Wait,
};

pub(super) const TTL: Ttl = Ttl::millis(400);

/// A process with its queues, a service with one resource, and the messages between them. Nothing
/// happens by itself, except that the driver takes the next step when it is woken.
pub(super) struct World {
    pub(super) queues: Queues,
    driver: Driver,
    pub(super) now: Moment,
    pub(super) tasks: Vec<Task>,
    pub(super) service: Service,
    pub(super) requests: Vec<Request>,
    pub(super) replies: Vec<Reply>,
    asked: Vec<Asking>,
    /// The greatest token that has been returned to anybody.
    greatest: u64,
    returned: HashSet<u64>,
}

/// What the driver of the resource is doing.
enum Driver {
    /// It is not there, or about to take the next step.
    Ready,
    Asking(Asking),
    Ending(PendingRelease),
    Watching(Moment),
}

/// A task of the process.
pub(super) struct Task {
    place: Option<Place>,
    pub(super) attempt: AttemptRef,
    ttl: Ttl,
    /// Every token returned before it began was at most this.
    floor: u64,
    pub(super) got: Option<Grant>,
    pub(super) finished: bool,
}

#[derive(Clone)]
pub(super) enum Request {
    Acquire(Asking, Moment),
    Renew(usize, SharedRenewal, Moment),
    End(PendingRelease),
}

pub(super) enum Reply {
    Acquired(Asking, Answer),
    Renewed(usize, SharedRenewal, Renewed),
    Ended(PendingRelease, Released),
}

#[derive(Default)]
pub(super) struct Service {
    pub(super) lease: Option<Held>,
    counter: u64,
    ended: HashSet<Holder>,
    /// A larger reserve is cut to this.
    pub(super) reserve_max: Option<u32>,
    /// A longer lease is cut to this, as if it had yet to be confirmed.
    pub(super) lease_max: Option<Duration>,
}

#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) holder: Holder,
    pub(super) token: u64,
    reserved: u32,
    until: Moment,
}

impl World {
    pub(super) fn new(passes: u32) -> Self {
        Self {
            queues: Queues::new(NonZeroU32::new(passes).unwrap()),
            driver: Driver::Ready,
            now: Moment::default(),
            tasks: Vec::new(),
            service: Service::default(),
            requests: Vec::new(),
            replies: Vec::new(),
            asked: Vec::new(),
            greatest: 0,
            returned: HashSet::new(),
        }
    }

    /// A task enters the queue.
    pub(super) fn begin(&mut self) -> usize {
        self.begin_with(TTL)
    }

    pub(super) fn begin_with(&mut self, ttl: Ttl) -> usize {
        let task = self.enter(ttl, Wait::Forever);
        self.settle();
        task
    }

    /// A task enters the queue, and does nothing yet.
    pub(super) fn enter(&mut self, ttl: Ttl, wait: Wait) -> usize {
        let attempt = AttemptRef::new(resource(), Holder::random());
        let mut request = AcquireRequest::new(attempt.clone(), ttl);
        (request.wait, request.upkeep) = (wait, Upkeep::Watchdog);
        let Entry::Queued(place) = self.queues.enter(&request, self.now) else {
            panic!("it joins, and it is new");
        };
        self.tasks.push(Task {
            place: Some(place),
            attempt,
            ttl,
            floor: self.greatest,
            got: None,
            finished: false,
        });
        self.tasks.len() - 1
    }

    /// A task goes away while it waits; what is pending is settled by its cancel.
    pub(super) fn leave(&mut self, task: usize) {
        let Some(place) = self.tasks[task].place.take() else {
            return;
        };
        self.queues.leave(&place.ticket, self.now);
        drop(place);
        self.cancel(task);
    }

    pub(super) fn cancel(&mut self, task: usize) {
        self.queues.cancel(&self.tasks[task].attempt, self.now);
        self.tasks[task].finished = true;
        // It goes away before it is told.
        drop(self.queues.wait_for_pending(&resource()));
        self.settle();
    }

    /// The holder has finished, or a former one releases once more.
    pub(super) fn finish(&mut self, task: usize) -> Option<Released> {
        let lease = self.sequencer(task)?;
        self.tasks[task].finished = true;
        let answer = match self.queues.release(&lease, self.now) {
            Release::Begin(pending, _) => {
                self.requests.push(Request::End(pending.clone()));
                self.queues.complete(Ending {
                    pending,
                    answer: Box::pin(std::future::pending()),
                });
                None
            }
            Release::Again(_) => None,
            Release::Answered(answer) => Some(answer),
            // It was released so long ago that this is not remembered.
            Release::Direct => Some(Released::NotHolder),
        };
        self.settle();
        answer
    }

    /// A task renews the lease that it has or had; false if it is told at once that it has lost it.
    pub(super) fn renew(&mut self, task: usize) -> bool {
        let Some(sequencer) = self.sequencer(task) else {
            return false;
        };
        let ttl = self.tasks[task].ttl;
        let renewal = self
            .queues
            .renewal(&RenewRequest::new(sequencer, ttl), self.now);
        self.settle();
        match renewal {
            Renewal::Shared(renewal) => {
                self.requests.push(Request::Renew(task, renewal, self.now));
                true
            }
            Renewal::NotHolder | Renewal::Direct => false,
        }
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.service.expire(self.now);
        self.settle();
    }

    /// The service runs a request. The reply is under way.
    pub(super) fn run(&mut self, request: Request) {
        let now = self.now;
        let reply = match request {
            Request::Acquire(asking, sent) => {
                let answer = self.service.answer(&asking.request, sent, now);
                answer.map(|answer| Reply::Acquired(asking, answer))
            }
            Request::Renew(task, renewal, sent) => {
                let renewed = self.service.renew(&renewal.request, now);
                let lease = Lease::counted_from(sent, renewal.request.ttl.get());
                let answer = if renewed {
                    Renewed::Renewed(lease)
                } else {
                    Renewed::NotHolder
                };
                Some(Reply::Renewed(task, renewal, answer))
            }
            Request::End(pending) => {
                let answer = self.service.end(&pending);
                Some(Reply::Ended(pending, answer))
            }
        };
        self.replies.extend(reply);
    }

    /// The process receives it.
    pub(super) fn hear(&mut self, reply: Reply) {
        match reply {
            Reply::Acquired(asking, answer) => {
                self.queues.answered(&asking, answer, self.now);
            }
            Reply::Renewed(task, renewal, answer) => {
                let told = self.queues.renewed(&renewal, answer, self.now);
                if let (Renewed::Renewed(lease), Some(grant)) = (told, &mut self.tasks[task].got) {
                    grant.lease = lease;
                }
            }
            Reply::Ended(pending, answer) => self.ended(&pending, &Ok(answer)),
        }
        self.settle();
    }

    /// The reply does not arrive.
    pub(super) fn lose(&mut self, reply: Reply) {
        if let Reply::Ended(pending, _) = reply {
            let lost = Error::unknown(ErrorKind::Unavailable);
            self.ended(&pending, &Err(lost));
            self.settle();
        }
    }

    fn ended(&mut self, pending: &PendingRelease, answer: &Result<Released, Error>) {
        self.queues.ended(pending, answer, self.now);
        if matches!(&self.driver, Driver::Ending(other) if other.attempt == pending.attempt) {
            self.driver = Driver::Ready;
        }
    }

    /// Repeats the requests that were not answered.
    pub(super) fn ask_again(&mut self) {
        let open = |asking: &&Asking| self.queues.is_asking_for(&asking.request.attempt);
        let open = self.asked.iter().filter(open).cloned();
        let again = open.map(|asking| Request::Acquire(asking, self.now));
        self.requests.extend(again);
    }

    /// Runs the oldest request, and receives the reply.
    pub(super) fn exchange(&mut self) {
        let request = self.requests.remove(0);
        self.run(request);
        if let Some(reply) = self.replies.pop() {
            self.hear(reply);
        }
    }

    /// A rival gets the lease if it is free: its token.
    pub(super) fn rival(&mut self) -> Option<u64> {
        let attempt = AttemptRef::new(resource(), Holder::random());
        let held = self
            .service
            .acquire(&AcquireRequest::new(attempt, TTL), self.now)?;
        self.returns(held.token, 0);
        Some(held.token)
    }

    /// An operator ends the lease.
    pub(super) fn force(&mut self) {
        self.service.finish();
    }

    pub(super) fn token(&self, task: usize) -> Option<u64> {
        let grant = self.tasks[task].got.as_ref()?;
        Some(grant.token.get())
    }

    pub(super) fn is_waiting(&self, task: usize) -> bool {
        self.tasks[task].place.is_some()
    }

    /// The holder of the lock, according to the process.
    pub(super) fn current_holder(&mut self) -> Option<Holder> {
        self.queues.expire(&resource(), self.now);
        let queue = self.queues.queues.get(&resource())?;
        let (_, current) = queue.held()?;
        Some(current.holder)
    }

    fn sequencer(&self, task: usize) -> Option<Sequencer> {
        let token = self.tasks[task].got.as_ref()?.token;
        let (issuer, holder) = (
            Issuer::new("test").unwrap(),
            self.tasks[task].attempt.holder,
        );
        Some(Sequencer::new(issuer, resource(), token, holder))
    }

    /// Lets everybody act until nobody does.
    fn settle(&mut self) {
        while (0..self.tasks.len()).any(|task| self.listens(task)) | self.drives() {}
    }

    fn listens(&mut self, number: usize) -> bool {
        let task = &mut self.tasks[number];
        let answer = task.place.as_mut().map(|place| place.answer.try_recv());
        let Some(Ok(answer)) = answer else {
            return false;
        };
        task.place = None;
        let Ok(Attempt::Granted(grant)) = answer else {
            task.finished = true;
            return true;
        };
        assert!(grant.lease.deadline() > self.now, "passed too late");
        let longest = self.now + task.ttl.get();
        assert!(grant.lease.deadline() <= longest, "longer than its ttl");
        task.got = Some(grant);
        let floor = task.floor;
        self.returns(grant.token.get(), floor);
        true
    }

    /// The driver takes its next step, if it has been woken or its moment has come.
    fn drives(&mut self) -> bool {
        let Some(queue) = self.queues.queues.get(&resource()) else {
            self.driver = Driver::Ready;
            return false;
        };
        let is_busy = match &self.driver {
            Driver::Ready => false,
            Driver::Ending(_) => true,
            Driver::Asking(asking) => queue.is_asking_for(asking.holder()),
            Driver::Watching(until) => {
                *until > self.now && queue.wake().notified().now_or_never().is_none()
            }
        };
        if is_busy {
            return false;
        }
        self.driver = match self.queues.next_step(&resource(), self.now) {
            Step::Done => Driver::Ready,
            Step::Watch(until) => Driver::Watching(until),
            Step::Complete(Ending { pending, .. }) => Driver::Ending(pending),
            Step::End(pending) => {
                self.requests.push(Request::End(pending.clone()));
                Driver::Ending(pending)
            }
            Step::Ask(asking, pending) => {
                self.requests.extend(pending.into_iter().map(Request::End));
                self.requests
                    .push(Request::Acquire(asking.clone(), self.now));
                self.asked.push(asking.clone());
                Driver::Asking(asking)
            }
        };
        true
    }

    fn returns(&mut self, token: u64, floor: u64) {
        assert!(token > floor, "out of order: {token} after {floor}");
        assert!(self.returned.insert(token), "{token} was returned twice");
        self.greatest = std::cmp::max(self.greatest, token);
    }
}

impl Service {
    /// `None` while another one holds the lease, unless the request is a single look.
    fn answer(&mut self, request: &AcquireRequest, sent: Moment, now: Moment) -> Option<Answer> {
        if self.ended.contains(&request.attempt.holder) {
            let error = Error::not_applied(ErrorKind::Released);
            return Some(Err(error));
        }
        let Some(held) = self.acquire(request, now) else {
            let retry_after = Duration::ZERO;
            return (request.wait == Wait::Never).then_some(Ok(Attempt::Held { retry_after }));
        };
        let left = std::cmp::min(held.until.since(now), request.ttl.get());
        let token = FencingToken::new(held.token).unwrap();
        let grant = Grant::new(token, Lease::counted_from(sent, left)).reserving(held.reserved);
        Some(Ok(Attempt::Granted(grant)))
    }

    fn acquire(&mut self, request: &AcquireRequest, now: Moment) -> Option<Held> {
        let holder = request.attempt.holder;
        if self.ended.contains(&holder) {
            return None;
        }
        if self.lease.is_none() {
            let reserved = request.reserve.get();
            let reserved = std::cmp::min(reserved, self.reserve_max.unwrap_or(reserved));
            self.lease = Some(Held {
                holder,
                token: self.counter + 1,
                reserved,
                until: now + self.lease_max.unwrap_or(request.ttl.get()),
            });
            self.counter += u64::from(reserved);
        }
        self.lease.filter(|lease| lease.holder == holder)
    }

    fn renew(&mut self, request: &RenewRequest, now: Moment) -> bool {
        let Some(lease) = self
            .lease
            .as_mut()
            .filter(|lease| lease.is(&request.sequencer))
        else {
            return false;
        };
        lease.until = now + request.ttl.get();
        true
    }

    fn end(&mut self, pending: &PendingRelease) -> Released {
        self.ended.insert(pending.attempt.holder);
        let released = pending.release.as_ref().is_some_and(|release| {
            let held = self.lease.filter(|lease| lease.is(&release.shared));
            held.is_some()
        });
        if self
            .lease
            .is_some_and(|lease| lease.holder == pending.attempt.holder)
        {
            self.finish();
        }
        if released {
            Released::Released
        } else {
            Released::NotHolder
        }
    }

    pub(super) fn finish(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.ended.insert(lease.holder);
        }
    }

    fn expire(&mut self, now: Moment) {
        if self.lease.is_some_and(|lease| lease.until <= now) {
            self.finish();
        }
    }
}

impl Held {
    fn is(&self, lease: &Sequencer) -> bool {
        self.holder == lease.holder() && self.token == lease.token().get()
    }
}

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}
