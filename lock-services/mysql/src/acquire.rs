use std::{future::pending, sync::Arc, time::Duration};

use super::{
    calls::{self, WaitMillis},
    client::Client,
    looking::LookAsClient,
    row::token,
};
use lock_core::{
    Attempt, Error, ErrorKind,
    backend::{
        AcquireRequest, Grant, Lease, Moment, Reply, Request, Requests, Wait, Wake,
        support::waiters::{Waiters, Waiting},
    },
};

/// The requests of one attempt, from the moment at which it has a place among the waiters.
pub(super) struct Asking<'a> {
    client: &'a Client,
    name: &'a str,
    request: &'a AcquireRequest,
    place: Option<Waiting<LookAsClient>>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        client: &'a Client,
        waiters: &'a Arc<Waiters<LookAsClient>>,
        request: &'a AcquireRequest,
    ) -> Self {
        let place = (request.wait != Wait::Never).then(|| waiters.place(&request.attempt));
        Self {
            client,
            name: &waiters.look().name,
            request,
            place,
        }
    }

    /// One look, by which it keeps its place in the queue or leaves it.
    async fn look(&self, queue: bool) -> Result<Reply, Error> {
        let client = self.client;
        let mut has_read_clock = false;
        loop {
            let asked = client.runtime.now();
            let wait = match queue {
                true => wait_millis(self.request.wait, asked),
                false => WaitMillis::Look,
            };
            let not_after = client.not_after_us();
            let call = calls::acquire(&client.names, self.request, wait, self.name, not_after);
            let row = client.one(call).await?;
            let left = Duration::from_millis(row.number("left_ms")?);
            return match &*row.text("outcome")? {
                "granted" => {
                    let token = token(row.number("token")?)?;
                    let grant = Grant::new(token, Lease::counted_from(asked, left));
                    Ok(Reply::Granted(grant.claimed(row.flag("claimed")?)))
                }
                "held" => Ok(Reply::Held { left }),
                // One task of this process looks for all of them.
                "waiting" => Ok(Reply::Queued {
                    left,
                    look_again: Duration::MAX,
                }),
                // The database's clock was set, or this process slept.
                "late" if !has_read_clock => {
                    client.read_clock().await?;
                    has_read_clock = true;
                    continue;
                }
                outcome => Err(refusal(outcome, row.number("token")?)),
            };
        }
    }
}

impl Requests for Asking<'_> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let Request::Look { queue } = request else {
            self.client.cancel(&self.request.attempt).await?;
            return Ok(Reply::Cancelled);
        };
        let reply = self.look(queue).await?;
        if let (Reply::Queued { .. }, Some(place)) = (reply, &self.place) {
            place.queued();
        }
        Ok(reply)
    }

    async fn woken(&self) -> Wake {
        match &self.place {
            Some(place) => place.woken().await,
            None => pending().await,
        }
    }
}

impl Client {
    /// Takes one look at several resources.
    pub(super) async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let mut has_read_clock = false;
        loop {
            let asked = self.runtime.now();
            let not_after = self.not_after_us();
            let Some(call) = calls::acquire_together(&self.names, requests, not_after) else {
                return Ok(Attempt::Granted(Vec::new()));
            };
            let row = self.one(call).await?;
            let (tokens, left) = (row.numbers("tokens")?, row.numbers("left_ms")?);
            let first = |numbers: &[u64]| numbers.first().copied().unwrap_or_default();
            return match &*row.text("outcome")? {
                "granted" => {
                    let grants = tokens.into_iter().zip(left).map(|(token, left)| {
                        let lease = Lease::counted_from(asked, Duration::from_millis(left));
                        Ok(Grant::new(self::token(token)?, lease))
                    });
                    grants.collect::<Result<_, _>>().map(Attempt::Granted)
                }
                "held" => Ok(Attempt::held(Duration::from_millis(first(&left)))),
                "late" if !has_read_clock => {
                    self.read_clock().await?;
                    has_read_clock = true;
                    continue;
                }
                outcome => Err(refusal(outcome, first(&tokens))),
            };
        }
    }
}

fn refusal(outcome: &str, number: u64) -> Error {
    let (kind, why) = match outcome {
        "released" => return Error::not_applied(ErrorKind::Released),
        "full" => return Error::not_applied(ErrorKind::QueueFull),
        "exhausted" => return Error::not_applied(ErrorKind::TokensExhausted),
        "implausible" => (
            ErrorKind::FloorImplausible,
            format!("at most {number} is plausible now"),
        ),
        "late" => (
            ErrorKind::Unavailable,
            "the request came too late: the clock of the database jumps".to_owned(),
        ),
        other => (ErrorKind::Refused, format!("the database says {other:?}")),
    };
    Error::not_applied(kind).because(why)
}

/// The longest wait with a bound that the procedure takes, 100 years.
const LONGEST_WAIT_MS: i64 = 3_155_760_000_000;

/// At the end of its wait, a request looks once more and leaves the queue.
fn wait_millis(wait: Wait, now: Moment) -> WaitMillis {
    match wait {
        Wait::Forever => WaitMillis::Forever,
        wait if wait.is_over(now) => WaitMillis::Look,
        wait => match i64::try_from(wait.end(now).since(now).as_millis()) {
            Ok(left) if left <= LONGEST_WAIT_MS => WaitMillis::For(left.max(1)),
            _ => WaitMillis::Forever,
        },
    }
}
