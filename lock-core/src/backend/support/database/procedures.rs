use std::{sync::Arc, time::Duration};

use tracing::debug;

use super::{
    Call, Database, Leases, Place, Renewal, Row, ServerClock, WaiterKey, answers::refusal, calls,
    granted, queued, time_to_wait,
};
use crate::{
    Attempt, Error, ErrorKind, FencingToken, Grant, Released, ResourceName, Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Forced, Moment, RenewRequest, Reply,
        support::OwnedTask,
    },
};

/// A database whose server decides about leases, by functions or procedures. These have the same
/// names, arguments and answers in each such database. `migrations/*/0007_lease_calls.sql` says
/// what they do.
pub trait Procedures: Database {
    /// Sends a call, and waits for its answer.
    ///
    /// # Cancel safety
    /// If the caller goes away, a call that was sent still gets its answer, or its connection is
    /// closed.
    fn rows(&self, call: Call) -> impl Future<Output = Result<Vec<Self::Row>, Error>> + Send;

    /// The name that distinguishes the waiters of this process from those of others.
    fn name(&self) -> &str;

    /// The database's clock, as it was read last.
    fn clock(&self) -> &ServerClock;

    /// Reads the database's clock.
    fn read_clock(&self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Reads the answer to this number of renewals.
    ///
    /// # Errors
    /// If the answer cannot be read.
    fn renewals(rows: Vec<Self::Row>, count: usize) -> Result<Vec<Renewal>, Error>;
}

impl<P: Procedures> Leases for P {
    async fn acquire(&self, request: &AcquireRequest, queue: bool) -> Result<Reply, Error> {
        let call = |asked, not_after| {
            let wait = time_to_wait(request.wait, queue, asked);
            calls::acquire(self.names(), request, wait, self.name(), not_after)
        };
        let (asked, row) = in_time(self, call).await?;
        let left = row.millis("left_ms")?;
        match &*row.text("outcome")? {
            "granted" => {
                let grant = granted(row.number("token")?, left, asked)?;
                Ok(Reply::Granted(grant.claimed(row.flag("claimed")?)))
            }
            "held" => Ok(Reply::Held { left }),
            "waiting" => Ok(queued(left)),
            outcome => Err(refusal(outcome, row.number("token")?)),
        }
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let Some(AcquireRequest { attempt, .. }) = requests.first() else {
            return Ok(Attempt::Granted(Vec::new()));
        };
        let call =
            |_, not_after| calls::acquire_together(self.names(), requests, attempt, not_after);
        let (asked, row) = in_time(self, call).await?;
        let (tokens, left) = (row.numbers("tokens")?, row.numbers("left_ms")?);
        let first = |numbers: &[u64]| numbers.first().copied().unwrap_or_default();
        match &*row.text("outcome")? {
            "granted" => {
                let leases = tokens.into_iter().zip(left);
                let grants =
                    leases.map(|(token, left)| granted(token, Duration::from_millis(left), asked));
                grants.collect::<Result<_, _>>().map(Attempt::Granted)
            }
            "held" => Ok(Attempt::held(Duration::from_millis(first(&left)))),
            outcome => Err(refusal(outcome, first(&tokens))),
        }
    }

    async fn renew(&self, leases: &[&RenewRequest]) -> Result<Vec<Renewal>, Error> {
        let rows = self.rows(calls::renew(self.names(), leases)).await?;
        Self::renewals(rows, leases.len())
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        released(self, calls::release(self.names(), lease, tombstone)).await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        released(self, calls::release_hold(self.names(), lease, attempt)).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        one(self, calls::cancel(self.names(), attempt))
            .await
            .map(drop)
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let row = one(self, calls::force_release(self.names(), resource, token)).await?;
        match &*row.text("outcome")? {
            "ended" => Ok(Forced::Ended {
                revocation: row.token("revocation")?,
            }),
            "exhausted" => Err(Error::not_applied(ErrorKind::TokensExhausted)),
            _ => Ok(Forced::NotHeld),
        }
    }

    async fn list(&self, only: Option<&ResourceName>) -> Result<Vec<Self::Row>, Error> {
        self.rows(calls::leases(self.names(), only)).await
    }

    async fn look(
        &self,
        attempts: &[String],
        touch: bool,
    ) -> Result<Vec<(WaiterKey, Place)>, Error> {
        let alive = if touch { attempts } else { &[] };
        let rows = self.rows(calls::look(self.name(), alive)).await?;
        let seen = rows.iter().map(|row| {
            let lease = row.text("resource")?;
            let resource = self.names().resource_of(&lease);
            let key = WaiterKey {
                resource: resource.unwrap_or(&lease).to_owned(),
                holder: row.text("holder")?,
                attempt: row.text("attempt")?,
            };
            let place = Place {
                turn: row.flag("turn")?,
                first: row.flag("first")?,
                left: row.millis("left_ms")?,
            };
            Ok((key, place))
        });
        seen.collect()
    }
}

/// Sends a call that must not take effect late, with the time from which it is late. If the
/// database answers that the call is late, because the database's clock was set or this process
/// slept, the call is sent once more.
async fn in_time<P: Procedures>(
    database: &P,
    call: impl Fn(Moment, Duration) -> Call + Send + Sync,
) -> Result<(Moment, P::Row), Error> {
    let mut has_read_clock = false;
    loop {
        let asked = database.tasks().runtime().now();
        let row = one(database, call(asked, database.clock().not_after(asked))).await?;
        if has_read_clock || row.text("outcome")? != "late" {
            return Ok((asked, row));
        }
        database.read_clock().await?;
        has_read_clock = true;
    }
}

async fn released<P: Procedures>(database: &P, call: Call) -> Result<Released, Error> {
    let row = one(database, call).await?;
    Ok(match &*row.text("outcome")? {
        "released" => Released::Released,
        _ => Released::NotHolder,
    })
}

async fn one<P: Procedures>(database: &P, call: Call) -> Result<P::Row, Error> {
    only(database.rows(call).await?)
}

/// The only row of an answer.
///
/// # Errors
/// [`ErrorKind::Refused`] if there is none.
pub fn only<R>(mut rows: Vec<R>) -> Result<R, Error> {
    rows.pop()
        .ok_or_else(|| Error::unknown(ErrorKind::Refused).because("the database gave no answer"))
}

/// Makes the database forget old tombstones every minute, until the result is dropped.
pub fn forget_every_minute(database: &Arc<impl Procedures>) -> OwnedTask {
    const PAUSE: Duration = Duration::from_secs(60);
    let weak = Arc::downgrade(database);
    let forgetting = async move {
        while let Some(database) = weak.upgrade() {
            database.tasks().runtime().sleep(PAUSE).await;
            if let Err(error) = database.rows(Call::new("forget_tombstones")).await {
                debug!(%error, "tombstones are forgotten a minute later");
            }
        }
    };
    database.tasks().own(forgetting)
}
