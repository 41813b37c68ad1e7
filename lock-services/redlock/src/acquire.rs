use std::time::Duration;

use super::{
    answers::Decision,
    attempt::{End, Tried, Try},
    nodes::Nodes,
    service::Service,
};
use lock_core::{
    Attempt, Error, ErrorKind, InitialToken, RetryPolicy,
    backend::{AcquireRequest, Grant, Moment, Pauses, Wait, support::Patience},
};

/// How often nobody may win at once before that is told as "held".
const SPLITS: u32 = 8;

/// When to look again. Nobody is woken, and nobody queues.
struct Polling {
    held: Pauses,
    split: Pauses,
    splits: u32,
    tries: u32,
    /// Since too few nodes have answered.
    patience: Option<Patience>,
}

/// What follows from a try.
enum Judged {
    Granted(Grant),
    Held(Duration),
    /// After this pause.
    Again(Duration),
}

impl Service {
    /// Tries until it is granted, refused, or the wait is over.
    ///
    /// # Cancel safety
    /// As clause 9 of the contract says: cancel the attempt.
    pub(super) async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        self.check_floor(request)?;
        let (clock, mut polling) = (&*self.nodes.clock, Polling::new());
        let until = request.wait.end(clock.now());
        loop {
            polling.tries += 1;
            let tried = Try::new(&self.nodes, &self.keys, request);
            let tried = tried.run(self.initial).await;
            let now = clock.now();
            let waited = polling.tries > 1;
            let pause = match polling.judge(tried, &self.nodes, now, request.wait)? {
                Judged::Granted(grant) if waited => {
                    return Ok(Attempt::Granted(grant.after_waiting()));
                }
                Judged::Granted(grant) => return Ok(Attempt::Granted(grant)),
                Judged::Held(retry_after) => return Ok(Attempt::Held { retry_after }),
                Judged::Again(pause) => pause,
            };
            // The wait ends with a last look, but one that does not wait is not cut short.
            let again = now + pause;
            let last = if now < until { until } else { again };
            clock.sleep_until(std::cmp::min(again, last)).await;
        }
    }

    /// By the clock of whoever asks: a node whose clock has jumped must not let a floor pass.
    fn check_floor(&self, request: &AcquireRequest) -> Result<(), Error> {
        let (Some(floor), InitialToken::Clock) = (request.floor, self.initial) else {
            return Ok(());
        };
        let greatest = self.initial.greatest_floor(0, self.nodes.clock.unix_time());
        if floor.get() <= greatest {
            return Ok(());
        }
        Err(implausible(&greatest.to_string()))
    }
}

impl Polling {
    fn new() -> Self {
        let millis = Duration::from_millis;
        let held = RetryPolicy::exponential(millis(10)).longest(millis(250));
        // Whoever collides once more has to spread wider.
        let split = RetryPolicy::exponential(millis(4)).longest(millis(100));
        Self {
            held: held.pauses(),
            split: split.jitter(lock_core::Jitter::Full).pauses(),
            splits: 0,
            tries: 0,
            patience: None,
        }
    }

    /// What follows from a try that ended now.
    fn judge(
        &mut self,
        tried: Tried,
        nodes: &Nodes,
        now: Moment,
        wait: Wait,
    ) -> Result<Judged, Error> {
        let over = wait.is_over(now);
        let decision = match tried.end {
            End::Granted(grant) => return Ok(Judged::Granted(grant)),
            End::NotGranted(decision) => decision,
            End::NotRaised => Decision::Split,
        };
        if decision != Decision::TooFew {
            self.patience = None;
        }
        let error = match decision {
            Decision::Held(left) => return Ok(self.after_held(left, over)),
            Decision::Split | Decision::Elected | Decision::Again(..) | Decision::NotHeld => {
                return Ok(self.after_split(over));
            }
            Decision::TooFew => {
                let error = nodes.too_few(&tried.answers.errors);
                let patience = || Patience::of(wait, now);
                let is_over = self.patience.get_or_insert_with(patience).is_over(now);
                if !is_over && error.kind() != ErrorKind::Refused {
                    let pause = self.held.next().unwrap_or_default();
                    return Ok(Judged::Again(pause));
                }
                error
            }
            Decision::Ended => refused(ErrorKind::Released),
            Decision::Implausible(greatest) => implausible(&greatest),
            Decision::Exhausted => refused(ErrorKind::TokensExhausted),
            Decision::BrokenCounter => {
                refused(ErrorKind::CounterBroken).because("a counter holds something else")
            }
            Decision::TooLong(longest) => refused(ErrorKind::InvalidInput).because(format!(
                "the nodes were provisioned for leases of at most {longest} ms",
            )),
        };
        Err(if tried.undone {
            error
        } else {
            error.outcome_unknown()
        })
    }

    fn after_held(&mut self, left: Duration, over: bool) -> Judged {
        let left = std::cmp::max(left, Duration::from_millis(1));
        if over {
            return Judged::Held(left);
        }
        let pause = self.held.next().unwrap_or(left);
        Judged::Again(std::cmp::min(pause, left))
    }

    fn after_split(&mut self, over: bool) -> Judged {
        self.splits += 1;
        let pause = self.split.next().unwrap_or_default();
        if over && self.splits >= SPLITS {
            return Judged::Held(pause);
        }
        Judged::Again(pause)
    }
}

fn refused(kind: ErrorKind) -> Error {
    Error::not_applied(kind)
}

fn implausible(greatest: &str) -> Error {
    refused(ErrorKind::FloorImplausible).because(format!("at most {greatest} is plausible now"))
}
