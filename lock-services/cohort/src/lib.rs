//! A [`Cohort`] wraps a lock service: it passes a lock on among the waiters of this process.
#![forbid(unsafe_code)]

mod backend;
mod debt;
mod ended;
mod line;
mod lines;
mod payment;
mod renewing;
mod tenure;
mod tenure_request;
mod waiters;
mod waiting;

use std::{
    collections::HashMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard},
};

use self::{
    lines::{Lines, Ticket},
    payment::Payment,
    tenure_request::Request,
};
use lock_core::{
    AttemptRef, Clock, Error, ErrorKind, Extension, LockService, Moment, Operation, ResourceName,
    support::lock,
};

/// A lock service whose waiters in this process stand in one line, and pass the lock on among
/// themselves without asking the service.
///
/// The process asks for one lease on behalf of its line, the *tenure*, and for as many tokens as
/// there are waiters. Each waiter becomes a holder with a token of its own; the service sees one
/// lease. So a whole line costs one request to acquire and one to release. The price is that
/// waiters of other processes are overtaken: up to [`passes`](Cohort::new) grants in a row stay
/// here. After that, or after a quarter of the ttl, or when the line is empty, the tenure is
/// released, and the process goes to the end of the service's queue.
///
/// # Which acquisitions join
/// Acquisitions that a watchdog of this process keeps up for at least their ttl
/// ([`Upkeep::Watchdog`](lock_core::Upkeep::Watchdog)). All others go straight to the service, as
/// they do without a cohort: those that another process may know of, such as detached leases and
/// acquisitions with a given holder; those with a floor or a reserve; and looks
/// ([`Wait::Never`](lock_core::Wait::Never)) at a resource that this process waits for or holds. A
/// guard that joined and is [detached](lock_core::LeaseGuard::detach) later remains this process's:
/// the service does not know its sequencer.
///
/// A tenure has the ttl and the note of the waiter that was at the head when it was asked for. The
/// lock is not passed to a waiter whose ttl is shorter than the time left: the tenure ends and the
/// waiter asks for one of its own. `max_waiters` counts the line of the process and, for its head,
/// the queue of the service.
///
/// If the service cannot [reserve](Extension::Reserve) tokens, everything goes straight to it.
///
/// # Order
/// A token that was reserved long ago must not go to a task that began after another process was
/// granted a greater one, which can happen when the tenure was ended by force. So the lock is
/// passed only to waiters that were already in line when the tenure's last answered request, its
/// acquire or a renewal, was sent. A tenure that is lost takes the rest of its tokens with it.
///
/// # Polling
/// Waiters act for each other while they are polled: the one at the head asks the service. An
/// acquire that is kept and not polled, as while another branch of a `select!` runs, stops the line
/// of its resource in this process until it is polled again or dropped; a branch that waits for the
/// same resource waits for ever. Give such an acquire a task of its own.
///
/// # What others see
/// One lease: the fingerprint of the tenure, its first token, and one place of the process in the
/// queue, however many wait here. In this process, inspecting and listing show the local holder
/// instead. [`force_release`](LockBackend::force_release) of the token shown ends the whole tenure,
/// unless this process has passed the lock on since then: then it is
/// [`NotHeld`](lock_core::Forced::NotHeld). If another process ends the tenure by force, this one
/// learns of it by its next renewal or release. Until then the lock may still be passed to waiters.
/// The store refuses their tokens, like those of any holder that has lost its lease and does not
/// know it yet.
pub struct Cohort {
    service: LockService,
    clock: Arc<dyn Clock>,
    passes: NonZeroU32,
    /// Whether the service can reserve tokens. Without a reserve everybody goes straight to the
    /// service.
    reserves: bool,
    /// Never held across an await; every step under it is short.
    state: Mutex<State>,
}

struct State {
    lines: Lines,
    /// Requests for tenures whose driver went away and that the next one has not yet taken up.
    parked: HashMap<AttemptRef, Request>,
}

impl Cohort {
    /// The default number of grants in a row that may stay in a process: 32. With more there is
    /// little to gain, and the others wait longer.
    pub const PASSES: NonZeroU32 = NonZeroU32::new(32).expect("not zero");

    /// Puts the waiters of this process into one line. The clock must be that of the service.
    #[must_use]
    pub fn new(service: impl Into<LockService>, clock: Arc<dyn Clock>, passes: NonZeroU32) -> Self {
        let service = service.into();
        let lines = Lines::new(service.kind(), passes);
        let reserves = service.capabilities().has(Extension::Reserve);
        Self {
            service,
            clock,
            passes,
            reserves,
            state: Mutex::new(State {
                lines,
                parked: HashMap::new(),
            }),
        }
    }

    /// The same for a service that has to be able to reserve tokens: without a reserve a cohort is
    /// in vain.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a service that cannot.
    pub fn reserving(
        service: impl Into<LockService>,
        clock: Arc<dyn Clock>,
        passes: NonZeroU32,
    ) -> Result<Self, Error> {
        let service = service.into();
        if service.capabilities().has(Extension::Reserve) {
            return Ok(Self::new(service, clock, passes));
        }
        let error = Error::not_applied(ErrorKind::Unsupported, Operation::Connect, service.kind());
        Err(error.because("this lock service cannot reserve tokens: connect without a cohort"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The time is read under the lock, when nobody else can change anything: it decides who has
    /// what.
    fn state_now(&self) -> (MutexGuard<'_, State>, Moment) {
        let state = self.state();
        (state, self.clock.now())
    }

    /// Keeps a request for the next head of the line, if anybody still wants it.
    fn park(&self, tenure: &AttemptRef, request: Request) {
        let mut state = self.state();
        if state.lines.is_asking_for(tenure) {
            state.parked.insert(tenure.clone(), request);
        }
    }

    fn leave(&self, ticket: &Ticket) {
        let abandoned = {
            let (mut state, now) = self.state_now();
            state.lines.leave(ticket, now);
            state.take_abandoned()
        };
        // Outside the lock, because dropping a request may do anything.
        drop(abandoned);
    }

    /// Pays the debts for this resource that nobody else is paying.
    async fn settle(&self, resource: &ResourceName) -> Result<(), Error> {
        let debts = self.state().lines.take_up_debts(resource);
        let debts: Vec<_> = debts
            .into_iter()
            .map(|debt| Payment::new(self, debt))
            .collect();
        for debt in debts {
            debt.make().await?;
        }
        Ok(())
    }
}

impl State {
    /// The requests that nobody wants any more.
    fn take_abandoned(&mut self) -> Vec<Request> {
        let Self { lines, parked } = self;
        let abandoned = parked.extract_if(|tenure, _| !lines.is_asking_for(tenure));
        abandoned.map(|(_, request)| request).collect()
    }
}

impl fmt::Debug for Cohort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cohort")
            .field("service", &self.service)
            .field("passes", &self.passes)
            .finish_non_exhaustive()
    }
}
