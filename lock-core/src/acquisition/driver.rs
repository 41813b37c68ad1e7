//! Does what the machine says, on Tokio.

use std::{
    future::{Future, pending},
    pin::{Pin, pin},
    time::Duration,
};

use futures_util::{FutureExt, future::OptionFuture};

use super::{Acquisition, Answer, Event, Failure, Reply, Request, Step, Wake};
use crate::{Attempt, Error, ErrorKind, Grant, Outcome, Runtime};

/// The requests of one attempt, as a lock service sends them, until this is dropped.
pub trait Requests: Sync {
    /// Whether wake-ups would arrive from now on. If not, the attempt looks once without a place in
    /// the queue. It takes a place when a wake-up shows that they arrive, or after a moment.
    fn hears(&self) -> bool {
        true
    }

    /// Sends one request, and waits for its answer.
    ///
    /// # Errors
    /// Those of the lock service. A request that fails with [`ErrorKind::Unavailable`] is sent
    /// again. After an error of another kind it is not.
    ///
    /// # Cancel safety
    /// The request may have been sent, or may be sent later.
    fn send(&self, request: Request) -> impl Future<Output = Result<Reply, Error>> + Send;

    /// Whether a copy of an earlier request of this attempt may arrive later, although that request
    /// was answered. A client that asks one node after the other leaves copies behind.
    fn has_copied(&self) -> bool {
        false
    }

    /// The time that one request may take, if it is longer than at most lock services, because a
    /// client asks one node after the other, or because an ensemble elects a leader. Requests are
    /// repeated for at least this time.
    fn longest_request(&self) -> Duration {
        Duration::ZERO
    }

    /// The next wake-up.
    ///
    /// # Cancel safety
    /// Cancel safe: no wake-up is lost.
    fn woken(&self) -> impl Future<Output = Wake> + Send {
        pending()
    }
}

/// Completes when the manager shuts down. From then on no watchdog gives anything back.
pub type Shutdown<'a> = Pin<&'a mut (dyn Future<Output = ()> + Send)>;

/// The end of a run of the machine.
#[derive(Debug)]
pub struct Ended {
    /// The answer to the caller.
    pub answer: Answer,
    /// The last error of a request.
    pub error: Option<Error>,
}

/// Acquires a lease with [`run`].
pub(crate) async fn acquire(
    machine: &mut Acquisition,
    requests: &impl Requests,
    runtime: &dyn Runtime,
    shutdown: Shutdown<'_>,
) -> Ended {
    machine.terms.longest_request = requests.longest_request();
    let started = Event::Started {
        hears: requests.hears(),
    };
    run(machine, started, requests, runtime, shutdown).await
}

/// Sends requests and waits, as the machine says, until it has an answer for the caller.
///
/// # Cancel safety
/// The machine knows what may be left: [`Acquisition::owes`].
pub async fn run(
    machine: &mut Acquisition,
    first: Event,
    requests: &impl Requests,
    runtime: &dyn Runtime,
    mut shutdown: Shutdown<'_>,
) -> Ended {
    let (mut request, mut error) = (pin!(OptionFuture::from(None)), None);
    // A caller that comes after the shutdown sends nothing.
    let mut is_open = shutdown.as_mut().now_or_never().is_none();
    let first = if is_open { first } else { Event::Closed };
    let mut step = machine.on(first, runtime.now());
    loop {
        let until = match step {
            Step::Send {
                request: sent,
                until,
            } => {
                request.set(Some(requests.send(sent)).into());
                until
            }
            Step::Wait { until } => until,
            Step::Answer(answer) => return Ended { answer, error },
        };
        let event = tokio::select! {
            biased;
            () = shutdown.as_mut(), if is_open => {
                is_open = false;
                Event::Closed
            }
            Some(answer) = request.as_mut() => {
                request.set(None.into());
                let reply = answer.unwrap_or_else(|failed| {
                    let failure = Failure::of(&failed);
                    error = Some(failed);
                    Reply::Failed(failure)
                });
                let copied = requests.has_copied();
                Event::Replied { reply, copied }
            }
            wake = requests.woken() => Event::Woken(wake),
            // Most answers need no timer, so the timer is made only when this branch is polled.
            () = async { runtime.sleep_until(until).await } => Event::Due,
        };
        step = machine.on(event, runtime.now());
    }
}

impl Ended {
    /// The answer to an acquire.
    ///
    /// # Errors
    /// The error of the lock service, with the outcome of the whole attempt.
    pub fn attempt(self) -> Result<Attempt<Grant>, Error> {
        match self.answer {
            Answer::Granted(grant) => Ok(Attempt::Granted(grant)),
            Answer::Held { left } => Ok(Attempt::Held { retry_after: left }),
            Answer::Failed(failure) => Err(self.error_of(failure)),
            _ => Err(Error::too_late()),
        }
    }

    /// The error of a failure.
    #[must_use]
    pub(crate) fn error_of(self, failure: Failure) -> Error {
        let error = self.error.filter(|error| error.kind() == failure.kind);
        let error = error.unwrap_or_else(|| {
            let error = Error::unknown(failure.kind);
            match failure.kind {
                ErrorKind::Unavailable => error.because("no answer before the wait was over"),
                _ => error,
            }
        });
        match failure.outcome {
            Outcome::Unknown => error.outcome_unknown(),
            Outcome::NotApplied => error.outcome_not_applied(),
        }
    }
}
