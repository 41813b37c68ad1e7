//! Waiters that compete for one resource, over one client or several.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use lock_core::{LeaseGuard, LockManager, ResourceName, Ttl};
use rslock::Lock;
use tokio::{task::JoinSet, time::sleep};

use super::rslock::Rslock;
use crate::{figure::BoxError, paired::Samples};

/// A ttl that is far longer than a turn.
const TTL: Ttl = Ttl::secs(30);

/// The part of the time that is not measured: the first hand-offs are slowed down by cold caches.
const WARM_UP: f64 = 0.15;

/// A lock for which waiters can compete.
pub(super) trait Contender: Clone + Send + Sync + 'static {
    /// The lease of a waiter that holds the resource.
    type Lease: Send;

    /// Acquires without a bound on the wait.
    fn take(&self, resource: &str) -> impl Future<Output = Result<Self::Lease, BoxError>> + Send;

    /// How long ago the waiter learned that it holds the resource, if it had more to do after that.
    fn told_ago(lease: &Self::Lease) -> Duration;

    fn give_back(&self, lease: Self::Lease) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Returns when this number of waiters are in line, if there is a line.
    async fn until_in_line(&self, resource: &str, waiters: u32) -> Result<(), BoxError>;
}

/// Our lock: first come, first served.
impl Contender for LockManager {
    type Lease = LeaseGuard;

    async fn take(&self, resource: &str) -> Result<LeaseGuard, BoxError> {
        Ok(self.acquire(resource).ttl(TTL).await?)
    }

    /// A pushed lease is confirmed, and counts from the moment before the confirmation.
    fn told_ago(lease: &LeaseGuard) -> Duration {
        let left = lease.remaining().unwrap_or_default();
        TTL.get().saturating_sub(left)
    }

    async fn give_back(&self, lease: LeaseGuard) -> Result<(), BoxError> {
        lease.release().await?;
        Ok(())
    }

    async fn until_in_line(&self, resource: &str, waiters: u32) -> Result<(), BoxError> {
        let resource = ResourceName::new(resource)?;
        while self.inspect(&resource).await?.waiters != Some(waiters.into()) {
            sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }
}

/// The peer: waiters poll.
impl Contender for Rslock {
    type Lease = Lock;

    async fn take(&self, resource: &str) -> Result<Lock, BoxError> {
        Ok(self.acquire(resource).await?)
    }

    fn told_ago(_lease: &Lock) -> Duration {
        Duration::ZERO
    }

    async fn give_back(&self, lease: Lock) -> Result<(), BoxError> {
        self.release(&lease).await;
        Ok(())
    }

    async fn until_in_line(&self, _resource: &str, _waiters: u32) -> Result<(), BoxError> {
        Ok(())
    }
}

/// The participants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    pub(super) waiters: u32,
    /// How long a waiter holds the resource.
    pub(super) hold: Duration,
    /// How long a waiter does something else before it asks again.
    pub(super) think: Duration,
    /// How long the contest is measured, after all waiters are in line.
    pub(super) watched: Duration,
}

/// The results of a contest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    /// The median time from one waiter's call of release until the next waiter learns that it holds
    /// the resource. A waiter that follows itself is not a hand-off.
    pub(super) handoff_us: f64,
    /// The median time from the release until the next waiter's return from acquire.
    pub(super) returned_us: f64,
    /// The median time from the release until any next holder has the resource: the time for which
    /// it is free.
    pub(super) gap_us: f64,
}

/// One turn of one waiter.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// When acquire had returned.
    acquired: Instant,
    /// When the waiter learned that it holds the resource, which may be before acquire had
    /// returned.
    told: Instant,
    /// When release was called.
    released: Instant,
    waiter: u32,
}

impl Contest {
    /// Runs the contest once, on a fresh resource. It is held until all waiters are in line. The
    /// clients take turns in having a waiter.
    pub(super) async fn run<C: Contender>(self, clients: &[C]) -> Result<Verdict, BoxError> {
        static CONTESTS: AtomicU32 = AtomicU32::new(0);
        let resource = format!("contest:{}", CONTESTS.fetch_add(1, Ordering::Relaxed));
        let first = clients.first().ok_or("a contest needs a client")?;
        let gate = first.take(&resource).await?;
        let over = Arc::new(AtomicBool::new(false));
        let mut waiters = JoinSet::new();
        for (waiter, client) in (0..self.waiters).zip(clients.iter().cycle()) {
            let over = Arc::clone(&over);
            waiters.spawn(self.wait(client.clone(), resource.clone(), waiter, over));
            // The waiters come one after the other, so that clients alternate in the line, too.
            first.until_in_line(&resource, waiter + 1).await?;
        }
        first.give_back(gate).await?;
        let opened = Instant::now();
        sleep(self.watched).await;
        let closed = Instant::now();
        over.store(true, Ordering::Relaxed);
        let mut holds = Vec::new();
        while let Some(done) = waiters.join_next().await {
            holds.extend(done??);
        }
        judge(holds, opened + self.watched.mul_f64(WARM_UP)..closed)
    }

    /// One waiter: it asks again when it has given the resource back, until the contest is over.
    async fn wait<C: Contender>(
        self,
        contender: C,
        resource: String,
        waiter: u32,
        over: Arc<AtomicBool>,
    ) -> Result<Vec<Hold>, BoxError> {
        let mut holds = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let lease = contender.take(&resource).await?;
            let acquired = Instant::now();
            let told = acquired
                .checked_sub(C::told_ago(&lease))
                .unwrap_or(acquired);
            if !self.hold.is_zero() {
                sleep(self.hold).await;
            }
            let released = Instant::now();
            holds.push(Hold {
                acquired,
                told,
                released,
                waiter,
            });
            contender.give_back(lease).await?;
            if !self.think.is_zero() {
                sleep(self.think).await;
            }
        }
        Ok(holds)
    }
}

/// Judges the holds that were acquired within the window. A lock that two waiters held at once has
/// no figures.
fn judge(mut holds: Vec<Hold>, window: Range<Instant>) -> Result<Verdict, BoxError> {
    holds.sort_unstable_by_key(|hold| hold.acquired);
    let mut gaps = Samples::default();
    let (mut handoffs, mut returns) = (Samples::default(), Samples::default());
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    for pair in holds.windows(2) {
        let [before, after] = [pair[0], pair[1]];
        let Some(gap) = after.acquired.checked_duration_since(before.released) else {
            return Err(format!("two had the lock at once: {before:?} and {after:?}").into());
        };
        if !window.contains(&after.acquired) {
            continue;
        }
        gaps.push(micros(gap));
        if after.waiter != before.waiter {
            let told = after.told.saturating_duration_since(before.released);
            handoffs.push(micros(told));
            returns.push(micros(gap));
        }
    }
    let verdict = Verdict {
        handoff_us: handoffs.median(),
        returned_us: returns.median(),
        gap_us: gaps.median(),
    };
    match verdict.handoff_us.is_nan() {
        true => Err("no waiter handed the lock on while it was watched".into()),
        false => Ok(verdict),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_offs_are_between_different_waiters_within_the_window() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let hold = |waiter, acquired, released| Hold {
            acquired: at(acquired),
            told: at(acquired - acquired % 10),
            released: at(released),
            waiter,
        };
        let holds = vec![
            hold(2, 40, 50),
            hold(1, 0, 10),
            hold(2, 12, 20),
            hold(2, 29, 30),
        ];
        let verdict = judge(holds, at(12)..at(40)).unwrap();
        assert_eq!((verdict.handoff_us, verdict.returned_us), (0.0, 2000.0));
        assert_eq!(verdict.gap_us, 9000.0);
        let both = vec![hold(1, 0, 10), hold(2, 9, 20)];
        assert!(judge(both, at(0)..at(100)).is_err(), "two had it at once");
    }
}
