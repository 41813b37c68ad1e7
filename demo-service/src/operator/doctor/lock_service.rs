use std::time::Duration;

use lock_core::{
    Clock, Error, ErrorKind, Fairness, Fencing, Issuer, LockManager, SystemClock, Ttl, Waking,
};

use super::{Findings, Heard};
use crate::{address::Address, failure::Failure, operator::locks};

/// The resource whose lease is taken and released. Nobody else has that name.
fn probe() -> String {
    format!("palisade-doctor:{:016x}", rand::random::<u64>())
}

/// Connects to the lock service, and takes and releases a lease. Without an answer there is a
/// finding that says so, and no manager.
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
        Ok((token, took)) => findings.good(format_args!(
            "a lease was granted with token {token} and released, in {:.1} ms",
            took.as_secs_f64() * 1000.0
        )),
        Err(error) => findings.wrong(error, "give this user the rights of docs/operations.md"),
    }
    promises(findings, &locks);
    for warning in heard.take() {
        findings.warned(warning);
    }
    Ok(Some(locks))
}

/// The token of a lease, and how long the second acquire and release took: the first one also
/// connects.
async fn cycle(locks: &LockManager) -> Result<(u64, Duration), Error> {
    let (probe, ttl) = (probe(), Ttl::secs(10));
    let mut last = None;
    for _ in 0..2 {
        let began = SystemClock.now();
        let guard = locks
            .acquire(&probe)
            .ttl(ttl)
            .wait(Duration::from_secs(5))
            .await?;
        let token = guard.token().get();
        guard.release().await?;
        last = Some((token, SystemClock.now().since(began)));
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
        Waking::Pushed => "and told that it is their turn",
        _ => "and ask whether it is their turn",
    };
    findings.good(format_args!("{tokens}; {order}, {waking}"));
}
