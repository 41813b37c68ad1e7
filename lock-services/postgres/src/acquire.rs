use std::{sync::Arc, time::Duration};

use lock_core::{
    Attempt, Error, ErrorKind,
    backend::{AcquireRequest, Grant, Lease, Moment, Wait, support::Patience},
};
use sqlx::Row;

use super::{
    client::Client,
    error::translate,
    rows::{number, numbers, token},
    sql::{self, WaitMillis},
    waiters::Waiters,
};

/// What the database says to a request to acquire.
enum Answer {
    Granted(Grant),
    Held(Duration),
    Waiting,
}

/// Asks until the lease is granted or the wait is over, each time that it may be our turn.
pub(super) async fn in_turn(
    client: &Client,
    waiters: &Arc<Waiters>,
    request: &AcquireRequest,
) -> Result<Attempt<Grant>, Error> {
    let clock = &*client.clock;
    let silent = client.silence.outlasts(request.wait, Patience::SHORT);
    let ask = |again: bool| async move {
        let answer = stand(client, waiters, request).await?;
        Ok(answer.map(|grant| grant.all_answered(!again)))
    };
    tokio::select! {
        biased;
        answer = Patience::of(request.wait, clock.now()).ask(clock, ask) => answer,
        error = silent => Err(error),
    }
}

async fn stand(
    client: &Client,
    waiters: &Arc<Waiters>,
    request: &AcquireRequest,
) -> Result<Attempt<Grant>, Error> {
    // Before the request: a notice that comes before its answer is not missed.
    let mut place = match request.wait {
        Wait::Never => None,
        Wait::Until(_) | Wait::Forever => Some(waiters.place(&request.attempt)),
    };
    let mut waited = false;
    loop {
        let channel = waiters.channel();
        match client.ask(request, channel).await? {
            Answer::Granted(grant) if waited => {
                return Ok(Attempt::Granted(grant.after_waiting()));
            }
            Answer::Granted(grant) => return Ok(Attempt::Granted(grant)),
            Answer::Held(retry_after) => return Ok(Attempt::held(retry_after)),
            Answer::Waiting => waited = true,
        }
        if let Some(place) = &mut place {
            place.queued();
            tokio::select! {
                () = place.turn() => {}
                () = client.clock.sleep_until(request.wait.limit()) => {}
            }
        }
    }
}

impl Client {
    async fn ask(&self, request: &AcquireRequest, channel: &str) -> Result<Answer, Error> {
        let mut clock_is_fresh = false;
        loop {
            let asked = self.clock.now();
            let wait = wait_millis(request.wait, asked);
            let row = self
                .one(sql::acquire(request, wait, channel, self.not_after()))
                .await?;
            let outcome: &str = row.try_get("outcome").map_err(translate)?;
            let left = Duration::from_millis(number(&row, "left_ms")?);
            return match outcome {
                "granted" => {
                    let token = token(number(&row, "token")?)?;
                    let claimed: Option<bool> = row.try_get("claimed").map_err(translate)?;
                    let grant = Grant::new(token, Lease::counted_from(asked, left));
                    Ok(Answer::Granted(grant.claimed(claimed.unwrap_or(false))))
                }
                "held" => Ok(Answer::Held(left)),
                "waiting" => Ok(Answer::Waiting),
                // The database's clock was set, or this process slept.
                "late" if !clock_is_fresh => {
                    self.check_server().await?;
                    clock_is_fresh = true;
                    continue;
                }
                outcome => Err(refusal(outcome, number(&row, "token")?)),
            };
        }
    }

    /// Takes one look, and asks again while there is no answer.
    pub(super) async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let ask = |again: bool| async move {
            let answer = self.ask_together(requests).await?;
            let answered = |grant: Grant| grant.all_answered(!again);
            Ok(answer.map(|grants| grants.into_iter().map(answered).collect()))
        };
        let patience = Patience::of(Wait::Never, self.clock.now());
        patience.ask(&*self.clock, ask).await
    }

    async fn ask_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let mut clock_is_fresh = false;
        loop {
            let asked = self.clock.now();
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
                "late" if !clock_is_fresh => {
                    self.check_server().await?;
                    clock_is_fresh = true;
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
