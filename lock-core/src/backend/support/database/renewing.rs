use std::time::Duration;

use super::{Leases, Renewal};
use crate::{
    Error, ErrorKind, Lease, Moment,
    backend::{RenewRequest, Renewed},
};

/// The greatest number of leases that one request renews.
const BATCH: usize = 1000;

/// If another transaction is deciding about a lease, its renewal is sent up to this many times,
/// after this pause each time.
const BUSY_TRIES: usize = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn renew(
    database: &impl Leases,
    leases: &[RenewRequest],
) -> Vec<Result<Renewed, Error>> {
    let mut answers = Vec::with_capacity(leases.len());
    for batch in leases.chunks(BATCH) {
        answers.extend(renew_batch(database, batch).await);
    }
    answers
}

async fn renew_batch(
    database: &impl Leases,
    leases: &[RenewRequest],
) -> Vec<Result<Renewed, Error>> {
    let runtime = database.tasks().runtime();
    let busy = || Err(Error::not_applied(ErrorKind::Unavailable).because("it is locked"));
    let mut answers: Vec<_> = leases.iter().map(|_| busy()).collect();
    let mut rest: Vec<_> = (0..leases.len()).collect();
    for _ in 0..BUSY_TRIES {
        let asked = runtime.now();
        let some: Vec<_> = rest.iter().map(|place| &leases[*place]).collect();
        match database.renew(&some).await {
            Ok(renewals) => {
                for (place, renewal) in rest.iter().zip(renewals) {
                    if let Some(answer) = answer(renewal, &leases[*place], asked) {
                        answers[*place] = Ok(answer);
                    }
                }
            }
            Err(error) => {
                for place in rest {
                    answers[place] = Err(error.clone());
                }
                return answers;
            }
        }
        rest.retain(|place| answers[*place].is_err());
        if rest.is_empty() {
            break;
        }
        runtime.sleep_until(runtime.now() + BUSY_PAUSE).await;
    }
    answers
}

/// The meaning of an answer. The lease is counted from before the request.
fn answer(renewal: Renewal, lease: &RenewRequest, asked: Moment) -> Option<Renewed> {
    match renewal {
        Renewal::Renewed => {
            let lease = Lease::counted_from(asked, lease.ttl.get());
            Some(Renewed::Renewed(lease))
        }
        Renewal::NotHolder => Some(Renewed::NotHolder),
        Renewal::Busy => None,
    }
}
