use std::{
    cmp::{max, min},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    answers::Decision,
    attempt::{End, Tried, Try},
    service::Service,
};
use lock_core::{
    Error, ErrorKind, InitialToken, Jitter, RetryPolicy,
    backend::{AcquireRequest, Pauses, Reply, Request, Requests, support::lock},
};

/// The number of tries of a look that does not wait. If rivals split the nodes each time, the
/// answer is "held".
const SPLITS: u32 = 8;

/// The requests of one attempt. Each look is a try at all nodes. No node keeps a queue.
pub(super) struct Attempting<'a> {
    service: &'a Service,
    request: &'a AcquireRequest,
    pauses: Mutex<Polls>,
    /// Whether a try may have left a lease at a node.
    is_left: AtomicBool,
}

/// The moments to look again. The nodes wake no waiter.
struct Polls {
    held: Pauses,
    split: Pauses,
}

/// The result of a look.
enum Looked {
    Is(Reply),
    /// No client has won.
    Split,
}

impl<'a> Attempting<'a> {
    pub(super) fn new(service: &'a Service, request: &'a AcquireRequest) -> Self {
        let millis = Duration::from_millis;
        let held = RetryPolicy::exponential(millis(10)).longest(millis(250));
        // Rivals that collide again have to spread their tries over a longer time.
        let split = RetryPolicy::exponential(millis(4)).longest(millis(100));
        let pauses = Polls {
            held: held.pauses(),
            split: split.jitter(Jitter::Full).pauses(),
        };
        Self {
            service,
            request,
            pauses: Mutex::new(pauses),
            is_left: AtomicBool::new(false),
        }
    }

    /// Looks once. An attempt that waits comes back later. An attempt that does not wait tries
    /// again soon, as long as no rival has won.
    async fn look(&self, waits: bool) -> Result<Reply, Error> {
        self.check_floor()?;
        let runtime = &self.service.nodes.runtime;
        let mut splits = 0;
        loop {
            let pause = match self.try_once().await? {
                Looked::Is(Reply::Held { left }) if waits => {
                    let pause = lock(&self.pauses).held.next(&**runtime).unwrap_or(left);
                    let look_again = min(pause, left);
                    return Ok(Reply::Queued { left, look_again });
                }
                Looked::Is(reply) => return Ok(reply),
                Looked::Split => lock(&self.pauses)
                    .split
                    .next(&**runtime)
                    .unwrap_or_default(),
            };
            splits += 1;
            let (left, look_again) = (pause, pause);
            if waits {
                return Ok(Reply::Queued { left, look_again });
            }
            if splits == SPLITS {
                return Ok(Reply::Held { left });
            }
            runtime.sleep(pause).await;
        }
    }

    async fn try_once(&self) -> Result<Looked, Error> {
        let Service {
            nodes,
            keys,
            initial,
        } = self.service;
        let tried = Try::new(nodes, keys, self.request).run(*initial).await;
        let is_granted = matches!(tried.end, End::Granted(_));
        self.is_left
            .fetch_or(!is_granted && !tried.undone, Ordering::Relaxed);
        self.read(&tried).map_err(|error| match tried.undone {
            true => error,
            false => error.outcome_unknown(),
        })
    }

    fn read(&self, tried: &Tried) -> Result<Looked, Error> {
        let decision = match &tried.end {
            End::Granted(grant) => return Ok(Looked::Is(Reply::Granted(*grant))),
            End::NotGranted(decision) => decision,
            End::NotRaised => &Decision::Split,
        };
        Err(match decision {
            Decision::Held(left) => {
                let left = max(*left, Duration::from_millis(1));
                return Ok(Looked::Is(Reply::Held { left }));
            }
            Decision::Split | Decision::Elected | Decision::Again(..) | Decision::NotHeld => {
                return Ok(Looked::Split);
            }
            Decision::TooFew => self.service.nodes.too_few(&tried.answers.errors),
            Decision::Ended => refused(ErrorKind::Released),
            Decision::Implausible(greatest) => implausible(greatest),
            Decision::Exhausted => refused(ErrorKind::TokensExhausted),
            Decision::BrokenCounter => {
                refused(ErrorKind::CounterBroken).because("a counter holds something else")
            }
            Decision::TooLong(longest) => refused(ErrorKind::InvalidInput).because(format!(
                "the nodes were provisioned for leases of at most {longest} ms",
            )),
        })
    }

    /// Refuses an implausible floor. It is compared with the clock of the client, because a node
    /// whose clock has jumped must not accept a wrong floor.
    fn check_floor(&self) -> Result<(), Error> {
        let Service { nodes, initial, .. } = self.service;
        let (Some(floor), InitialToken::Clock) = (self.request.floor, initial) else {
            return Ok(());
        };
        let greatest = initial.greatest_floor(0, nodes.runtime.unix_time());
        if floor.get() <= greatest {
            return Ok(());
        }
        Err(implausible(&greatest.to_string()))
    }
}

impl Requests for Attempting<'_> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        match request {
            Request::Look { queue } => self.look(queue).await,
            _ => {
                self.service.cancel(&self.request.attempt).await?;
                Ok(Reply::Cancelled)
            }
        }
    }

    fn has_copied(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }
}

fn refused(kind: ErrorKind) -> Error {
    Error::not_applied(kind)
}

fn implausible(greatest: &str) -> Error {
    refused(ErrorKind::FloorImplausible).because(format!("at most {greatest} is plausible now"))
}
