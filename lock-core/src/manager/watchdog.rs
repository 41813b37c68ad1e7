//! The one task of a manager: it renews leases in batches and finishes what others dropped.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, warn};

use super::{cleanup::CleanUp, lost::LostReason, status::LeaseStatus};
use crate::{
    BoxFuture, Clock, Error, ErrorKind, LockBackend, Moment, Operation, RenewRequest, Renewed,
};

/// Leases per renewal request. A larger script would hold up everybody else on the lock server.
const BATCH: usize = 100;

/// Leases that were released stay in line until they would have been due. They are thrown out when
/// the line is this long, and then whenever it has doubled.
const PURGE_MIN: usize = 1024;

/// A renewal that failed is repeated after a tenth of the ttl, within these bounds.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// What the manager and its guards tell the watchdog. Sending never blocks.
#[derive(Debug)]
pub(super) enum Command {
    /// Renew this lease, for the first time at this moment.
    Watch(Arc<LeaseStatus>, Moment),
    /// Finish this, nobody waits for it.
    CleanUp(CleanUp),
    /// Finish what is queued, renew nothing any more, then answer.
    ShutDown(oneshot::Sender<()>),
}

/// The manager's end of the watchdog.
#[derive(Debug)]
pub(super) struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    #[cfg(feature = "test-util")]
    frozen: watch::Sender<bool>,
}

impl Handle {
    /// Sends a command; false if the watchdog has ended.
    pub(super) fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok()
    }

    /// Completes when the watchdog takes no commands any more.
    pub(super) async fn closed(&self) {
        self.commands.closed().await;
    }

    /// Stops (or lets go on) everything that the watchdog does, as if the process were stopped.
    #[cfg(feature = "test-util")]
    pub(super) fn freeze(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }
}

/// Starts the watchdog task. It ends after a shutdown, or when the manager and all guards are gone.
///
/// # Panics
/// Outside a Tokio runtime.
pub(super) fn start(backend: Arc<dyn LockBackend>, clock: Arc<dyn Clock>) -> Handle {
    let (commands, receiver) = mpsc::unbounded_channel();
    let frozen = watch::Sender::new(false);
    let watchdog = Watchdog {
        backend,
        clock,
        commands: receiver,
        frozen: frozen.subscribe(),
        due: BTreeMap::new(),
        next_id: 0,
        purge_at: PURGE_MIN,
        in_flight: FuturesUnordered::new(),
        open: true,
        shut_down: Vec::new(),
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "ends when the last handle is gone"
    )]
    drop(tokio::spawn(watchdog.run()));
    Handle {
        commands,
        #[cfg(feature = "test-util")]
        frozen,
    }
}

struct Watchdog {
    backend: Arc<dyn LockBackend>,
    clock: Arc<dyn Clock>,
    commands: mpsc::UnboundedReceiver<Command>,
    frozen: watch::Receiver<bool>,
    /// By the moment of the next renewal; the number keeps leases of one moment apart.
    due: BTreeMap<(Moment, u64), Arc<LeaseStatus>>,
    next_id: u64,
    purge_at: usize,
    /// Requests under way. A slow one delays no other.
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
    open: bool,
    shut_down: Vec<oneshot::Sender<()>>,
}

enum Done {
    Renewed(Vec<(Arc<LeaseStatus>, Result<Renewed, Error>)>),
    CleanedUp,
}

impl Watchdog {
    async fn run(mut self) {
        while self.open || !self.in_flight.is_empty() {
            // An error means that the handle is gone, and with it whoever could have frozen us.
            drop(self.frozen.wait_for(|frozen| !frozen).await);
            let next = self
                .due
                .first_key_value()
                .map_or(Moment::NEVER, |((due, _), _)| *due);
            let clock = Arc::clone(&self.clock);
            // Frozen means at once. After that what ends by itself, so that commands, which may
            // come without end, delay no renewal.
            tokio::select! {
                biased;
                Ok(()) = self.frozen.changed() => {}
                Some(done) = self.in_flight.next() => self.settle(done),
                () = clock.sleep_until(next) => self.renew_due(),
                command = self.commands.recv(), if self.open => self.obey(command),
            }
        }
        for waiting in self.shut_down {
            // Whoever asked may have stopped waiting for the answer.
            waiting.send(()).ok();
        }
    }

    fn obey(&mut self, command: Option<Command>) {
        match command {
            Some(Command::Watch(lease, renew_by)) => self.schedule(lease, renew_by),
            Some(Command::CleanUp(clean_up)) => self.clean_up(clean_up),
            Some(Command::ShutDown(answer)) => {
                self.shut_down.push(answer);
                self.commands.close();
            }
            // Everything that was queued has been received.
            None => {
                self.open = false;
                for (_, lease) in std::mem::take(&mut self.due) {
                    lease.lose(LostReason::ShutDown);
                }
            }
        }
    }

    fn schedule(&mut self, lease: Arc<LeaseStatus>, renew_by: Moment) {
        if !self.open {
            lease.lose(LostReason::ShutDown);
            return;
        }
        self.due.insert((renew_by, self.next_id), lease);
        self.next_id += 1;
        if self.due.len() >= self.purge_at {
            self.due.retain(|_, lease| lease.is_held());
            self.purge_at = std::cmp::max(self.due.len() * 2, PURGE_MIN);
        }
    }

    fn clean_up(&self, clean_up: CleanUp) {
        let (backend, clock) = (Arc::clone(&self.backend), Arc::clone(&self.clock));
        self.in_flight.push(Box::pin(async move {
            clean_up.finish(&*backend, &*clock).await;
            Done::CleanedUp
        }));
    }

    fn renew_due(&mut self) {
        let later = self.due.split_off(&(self.clock.now(), u64::MAX));
        let due = std::mem::replace(&mut self.due, later);
        let held: Vec<_> = due.into_values().filter(|lease| lease.is_held()).collect();
        for batch in held.chunks(BATCH) {
            self.in_flight
                .push(Box::pin(renew(Arc::clone(&self.backend), batch.to_vec())));
        }
    }

    fn settle(&mut self, done: Done) {
        let Done::Renewed(answers) = done else { return };
        for (lease, answer) in answers {
            match answer {
                Ok(Renewed::Renewed(renewed)) => {
                    lease.renewed(renewed);
                    self.schedule(lease, renewed.renew_by());
                }
                Ok(Renewed::NotHolder) => {
                    // Of a lease that was released meanwhile this is no news.
                    if lease.is_held() {
                        warn!(resource = %lease.sequencer().resource(), "lease lost");
                    }
                    lease.lose(LostReason::NotHolder);
                }
                Err(error) => self.retry(lease, &error),
            }
        }
    }

    fn retry(&mut self, lease: Arc<LeaseStatus>, error: &Error) {
        if lease.is_held() {
            debug!(%error, "renewal failed, trying again within the lease");
            let pause = (lease.ttl().get() / 10).clamp(RETRY_MIN, RETRY_MAX);
            let again = self.clock.now() + pause;
            self.schedule(lease, again);
        } else {
            warn!(%error, "renewal failed until the lease ran out");
        }
    }
}

async fn renew(backend: Arc<dyn LockBackend>, leases: Vec<Arc<LeaseStatus>>) -> Done {
    let requests: Vec<_> = leases
        .iter()
        .map(|lease| RenewRequest {
            sequencer: lease.sequencer().clone(),
            ttl: lease.ttl(),
        })
        .collect();
    let mut answers = backend.renew(&requests).await.into_iter();
    let answered = leases.into_iter().map(|lease| {
        let answer = answers.next().unwrap_or_else(|| {
            Err(
                Error::new(ErrorKind::Refused, Operation::Renew, backend.kind())
                    .on(lease.sequencer().resource())
                    .because("the backend gave no answer for the lease")
                    .outcome_unknown(),
            )
        });
        (lease, answer)
    });
    Done::Renewed(answered.collect())
}
