use std::time::{Duration, Instant};

use fenced_store::FenceError;
use lock_core::{Attempt, DetachedLease, ResourceName, Ttl};

use super::{app::App, error::ApiError, unanswered::Unanswered};
use crate::ledger::Ledger;

/// How often the lock service may be behind the store before we give up: once is a lost counter,
/// a second time a race; more than that is for an operator to look at.
const ATTEMPTS_MAX: u32 = 3;

/// Acquires a lease and claims its token in the store: older holders are shut out before the
/// client hears of its lease.
///
/// When the store has seen a greater token than the lock service issues, the lock service has lost
/// its counter; it is asked for a token above the mark.
///
/// # Cancel safety
/// Safe: it leaves the queue, or gives back what it got.
pub(super) async fn acquire_and_claim<DB: Ledger>(
    app: &App<DB>,
    resource: &ResourceName,
    ttl: Ttl,
    wait: Duration,
) -> Result<Attempt<(DetachedLease, Unanswered)>, ApiError> {
    let started = Instant::now();
    let mut floor = None;
    let mut attempt = 1;
    loop {
        let wait = wait.saturating_sub(started.elapsed());
        let acquire = app.locks.acquire(resource).ttl(ttl).wait(wait);
        let acquire = match floor {
            Some(floor) => acquire.at_least(floor),
            None => acquire,
        };
        let lease = match acquire.detached().await? {
            Attempt::Granted(lease) => lease,
            Attempt::Held { retry_after } => return Ok(Attempt::Held { retry_after }),
        };
        let unanswered = app.returns.watch(lease.sequencer.clone());
        let stale = match app.store.claim(&lease.sequencer).await {
            Ok(()) => return Ok(Attempt::Granted((lease, unanswered))),
            Err(stale @ FenceError::Stale { .. }) if attempt < ATTEMPTS_MAX => stale,
            Err(error) => return Err(error.into()),
        };
        tracing::warn!(error = %stale, "the lock service is behind the store: raising its counter");
        if let FenceError::Stale { high_water, .. } = stale {
            floor = high_water.next();
        }
        // Before the next attempt, which would otherwise wait for this lease to end.
        app.locks.release(&lease.sequencer).await?;
        unanswered.answered();
        attempt += 1;
    }
}
