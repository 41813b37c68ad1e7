use std::time::Duration;

use lock_core::{
    Error, ErrorKind, Fairness, Fencing, Issuer, LeaseGuard, LockManager, Ttl, Waking,
    backend::{Runtime, TokioRuntime},
};

use super::{Findings, Heard};
use crate::{
    address::Address,
    failure::{Failure, with_sources},
    operator::locks,
};

/// The resource whose lease is taken and released. No other program uses that name.
fn probe() -> String {
    format!("palisade-doctor:{:016x}", rand::random::<u64>())
}

/// Connects to the lock service, and takes and releases a lease. If the service does not answer,
/// adds a finding, and returns no manager.
pub(super) async fn examine_lock(
    findings: &mut Findings,
    address: &Address,
    issuer: Option<&Issuer>,
    heard: &Heard,
) -> Result<Option<LockManager>, Failure> {
    findings.of("lock", address);
    let locks = match locks::connect("lock", address, issuer).await {
        Ok(locks) => locks,
        Err(usage @ Failure::Usage(_)) => return Err(usage),
        Err(failure) => {
            findings.down(failure);
            return Ok(None);
        }
    };
    let cycled = cycle(&locks).await;
    match cycled {
        Ok((token, took)) => {
            findings.good(format_args!(
                "a lease was granted with token {token} and released, in {}",
                ms(took)
            ));
            match hand_over(&locks).await {
                Ok(took) => {
                    findings.good(format_args!(
                        "a waiter had it {} after its release",
                        ms(took)
                    ));
                }
                Err(error) => refused(findings, &error),
            }
        }
        Err(error) => refused(findings, &error),
    }
    promises(findings, &locks);
    for warning in heard.take() {
        findings.warned(warning);
    }
    Ok(Some(locks))
}

/// Adds the finding for a lease that was not granted. The error has the cause, and often the
/// remedy.
fn refused(findings: &mut Findings, error: &Error) {
    let change = match error.kind() {
        ErrorKind::Refused => {
            "change what the server refuses; docs/operations/rights.md has the list of rights"
        }
        ErrorKind::Unavailable => {
            "examine it again when this is over: until then no client gets a lease here"
        }
        ErrorKind::Lost | ErrorKind::Released => {
            "examine it again: the lease was ended meanwhile, or the service was too slow"
        }
        _ => "change what the error names",
    };
    findings.wrong(with_sources(error), change);
}

fn ms(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1000.0)
}

/// The time from a release until a waiter has the lease. A lock service warns if it cannot wake a
/// waiter.
async fn hand_over(locks: &LockManager) -> Result<Duration, Error> {
    let probe = probe();
    let guard = acquire(locks, &probe).await?;
    let release = async {
        until_waiting(locks, &probe).await;
        let released = TokioRuntime.now();
        guard.release().await.map(|_| released)
    };
    let waiting = async {
        let guard = acquire(locks, &probe).await?;
        Ok((guard, TokioRuntime.now()))
    };
    let (released, (guard, granted)) = tokio::try_join!(release, waiting)?;
    guard.release().await?;
    Ok(granted.since(released))
}

/// Returns when a client waits. There is a bound, because not every lock service knows its waiters.
async fn until_waiting(locks: &LockManager, probe: &str) {
    let until = TokioRuntime.now() + Duration::from_secs(1);
    while TokioRuntime.now() < until {
        let seen = locks.inspect(probe).await;
        if seen.is_ok_and(|seen| seen.waiters.is_some_and(|waiters| waiters > 0)) {
            return;
        }
        TokioRuntime
            .sleep_until(TokioRuntime.now() + Duration::from_millis(20))
            .await;
    }
}

/// Acquires a lease of two seconds. Every lock service grants that, also one with a short session
/// of ZooKeeper.
async fn acquire(locks: &LockManager, probe: &str) -> Result<LeaseGuard, Error> {
    let acquire = locks.acquire(probe).ttl(Ttl::secs(2));
    acquire.wait(Duration::from_secs(5)).await
}

/// The token of a lease, and the time for the second acquire and release. The first acquire also
/// connects.
async fn cycle(locks: &LockManager) -> Result<(u64, Duration), Error> {
    let probe = probe();
    let mut last = None;
    for _ in 0..2 {
        let began = TokioRuntime.now();
        let guard = acquire(locks, &probe).await?;
        let token = guard.token().get();
        guard.release().await?;
        last = Some((token, TokioRuntime.now().since(began)));
    }
    last.ok_or_else(|| Error::not_applied(ErrorKind::Unavailable))
}

fn promises(findings: &mut Findings, locks: &LockManager) {
    let able = locks.capabilities();
    let tokens = match able.fencing {
        Fencing::Durable => "tokens rise for ever",
        _ => {
            "tokens rise as long as the service keeps its state; the store refuses those that fall"
        }
    };
    let order = match able.fairness {
        Fairness::None => "waiters are served in any order",
        _ => "waiters are served first come, first served",
    };
    let waking = match able.waking {
        Waking::Pushed => "and get a message when it is their turn",
        _ => "and ask whether it is their turn",
    };
    findings.good(format_args!("{tokens}; {order}, {waking}"));
}
