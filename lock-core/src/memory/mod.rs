//! The in-process lock service, with the URL `memory:`; the reference implementation of the
//! contract.
//!
//! It lives as long as its [`MemoryBackend`]; clones of the handle are the same service. Waiters
//! are served first come, first served, and a release hands the lease directly to the next one.

mod table;

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use self::table::{Answer, Refusal, Table, Waiting};
use crate::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, Capabilities, Clock, Error, ErrorKind,
    Extension, Fairness, Fencing, FencingToken, Forced, Grant, InitialToken, Inspection, Listed,
    LockBackend, Released, RenewRequest, Renewed, ResourceName, Sequencer, SystemClock, Wait,
    Waking, support::lock,
};

/// The kind that errors name and the default issuer.
const KIND: &str = "memory";

/// How long an ended acquisition is remembered, so that a late request of it is refused.
const ENDED_TTL: Duration = Duration::from_secs(60);

/// A lock service inside this process: of this value and its clones, and of nobody else.
#[derive(Clone)]
pub struct MemoryBackend {
    /// Never held across an await; every step under it is short.
    table: Arc<Mutex<Table>>,
    clock: Arc<dyn Clock>,
}

/// On the system's clock, with tokens that begin at its time.
impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock), InitialToken::default())
    }
}

impl MemoryBackend {
    /// A new, empty service.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, initial: InitialToken) -> Self {
        Self {
            table: Arc::new(Mutex::new(Table::new(initial))),
            clock,
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    async fn wait(
        &self,
        attempt: &AttemptRef,
        wait: Wait,
        waiting: Waiting,
    ) -> Result<Attempt<Grant>, Error> {
        let until = wait.limit();
        let Waiting { mut grant, moved } = waiting;
        loop {
            // Enabled before the deadline is read, so that no change of it is missed.
            let mut change = pin!(moved.notified());
            change.as_mut().enable();
            let next_change = self.table().next_change(&attempt.resource);
            tokio::select! {
                biased;
                granted = &mut grant => {
                    let grant = granted.map_err(|_| cancelled())?;
                    return grant
                        .map(|grant| Attempt::Granted(grant.after_waiting()))
                        .map_err(Error::from);
                }
                () = change => continue,
                () = self.clock.sleep_until(std::cmp::min(next_change, until)) => {}
            }
            let now = self.clock.now();
            let mut table = self.table();
            table.serve(&attempt.resource, now);
            if now >= until && table.leave_queue(attempt) {
                let retry_after = table.next_change(&attempt.resource).since(now);
                return Ok(Attempt::Held { retry_after });
            }
        }
    }
}

impl LockBackend for MemoryBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::Fifo, Waking::Pushed)
            .extended(Extension::ALL)
    }

    async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let attempt = &request.attempt;
        let answer = self
            .table()
            .acquire(request, self.clock.now(), self.clock.unix_time());
        match answer.map_err(Error::from)? {
            Answer::Granted(grant) => Ok(Attempt::Granted(grant)),
            Answer::Held(retry_after) => Ok(Attempt::Held { retry_after }),
            Answer::Queued(waiting) => self.wait(attempt, request.wait, waiting).await,
        }
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let now = self.clock.now();
        let mut table = self.table();
        leases
            .iter()
            .map(|lease| Ok(table.renew(lease, now)))
            .collect()
    }

    async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        Ok(self.table().release(lease, self.clock.now()))
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.table().cancel(attempt, self.clock.now());
        Ok(())
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        Ok(self.table().inspect(resource, self.clock.now()))
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        let now = self.clock.now();
        Ok(self.table().release_hold(lease, attempt, now))
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let now = self.clock.now();
        let forced = self.table().force_release(resource, token, now);
        forced.map_err(Error::from)
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        Ok(self.table().list(self.clock.now()))
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let (now, unix_time) = (self.clock.now(), self.clock.unix_time());
        let answer = self.table().acquire_together(requests, now, unix_time);
        answer.map_err(Error::from)
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackend").finish_non_exhaustive()
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::not_applied(match refusal {
            Refusal::Ended => ErrorKind::Released,
            Refusal::TokensExhausted => ErrorKind::TokensExhausted,
            Refusal::QueueFull => ErrorKind::QueueFull,
            Refusal::FloorImplausible { greatest } => {
                let why = format!("at most {greatest} is plausible now");
                return Self::not_applied(ErrorKind::FloorImplausible).because(why);
            }
        })
    }
}

fn cancelled() -> Error {
    Error::not_applied(ErrorKind::Released).because("the attempt was cancelled")
}
