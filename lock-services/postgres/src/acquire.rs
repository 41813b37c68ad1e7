use std::{future::pending, sync::Arc, time::Duration};

use lock_core::{
    Attempt, Error, ErrorKind,
    backend::{AcquireRequest, Grant, Lease, Moment, Reply, Request, Requests, Wait, Wake},
};
use sqlx::Row;

use super::{
    client::Client,
    error::translate,
    rows::{number, numbers, token},
    sql::{self, WaitMillis},
    waiters::{Waiters, Waiting},
};

/// The requests of one attempt, from the moment at which it has a place among the waiters.
pub(super) struct Asking<'a> {
    client: &'a Client,
    channel: &'a str,
    request: &'a AcquireRequest,
    place: Option<Waiting>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        client: &'a Client,
        waiters: &'a Arc<Waiters>,
        request: &'a AcquireRequest,
    ) -> Self {
        // Before the first request: a notice that comes before its answer is not missed.
        let place = (request.wait != Wait::Never).then(|| waiters.place(&request.attempt));
        Self {
            client,
            channel: waiters.channel(),
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
            let call = sql::acquire(self.request, wait, self.channel, client.not_after());
            let row = client.one(call).await?;
            let outcome: &str = row.try_get("outcome").map_err(translate)?;
            let left = Duration::from_millis(number(&row, "left_ms")?);
            return match outcome {
                "granted" => {
                    let token = token(number(&row, "token")?)?;
                    let claimed: Option<bool> = row.try_get("claimed").map_err(translate)?;
                    let grant = Grant::new(token, Lease::counted_from(asked, left));
                    Ok(Reply::Granted(grant.claimed(claimed.unwrap_or(false))))
                }
                "held" => Ok(Reply::Held { left }),
                // One task of this process looks for all of them.
                "waiting" => Ok(Reply::Queued {
                    left,
                    look_again: Duration::MAX,
                }),
                // The database's clock was set, or this process slept.
                "late" if !has_read_clock => {
                    client.check_server().await?;
                    has_read_clock = true;
                    continue;
                }
                outcome => Err(refusal(outcome, number(&row, "token")?)),
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
            let Some(call) = sql::acquire_together(requests, self.not_after()) else {
                return Ok(Attempt::Granted(Vec::new()));
            };
            let row = self.one(call).await?;
            let outcome: &str = row.try_get("outcome").map_err(translate)?;
            let (tokens, left) = (numbers(&row, "tokens")?, numbers(&row, "left_ms")?);
            let first = |numbers: &[i64]| numbers.first().map_or(0, |first| first.unsigned_abs());
            return match outcome {
                "granted" => {
                    let grants = tokens.into_iter().zip(left).map(|(token, left)| {
                        let left = Duration::from_millis(left.unsigned_abs());
                        let lease = Lease::counted_from(asked, left);
                        Ok(Grant::new(self::token(token.unsigned_abs())?, lease))
                    });
                    grants.collect::<Result<_, _>>().map(Attempt::Granted)
                }
                "held" => Ok(Attempt::held(Duration::from_millis(first(&left)))),
                "late" if !has_read_clock => {
                    self.check_server().await?;
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

/// The longest wait with a bound, 100 years: that of the domain `fenced.wait_ms`.
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
