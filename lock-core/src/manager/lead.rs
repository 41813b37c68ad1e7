use std::{fmt, ops::Deref, time::Duration};

use tracing::{debug, info};

use super::{Acquire, LeaseGuard, LockManager, Lost, LostReason};
use crate::{
    Error, Released, RetryPolicy, Runtime,
    backend::{AcquiresLeases, LeaseSettings},
};

/// A leader steps down when less than this part of its ttl is left. Renewals are due when two
/// thirds are left, so by then no renewal has succeeded for half a ttl.
const MARGIN: u32 = 6;

/// Pauses after campaigns that had no answer.
const AGAIN: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(200)).longest(Duration::from_secs(10));

/// A section that has gone on for this time, and for longer than the pause before it, counts as
/// recovered.
const RECOVERED: Duration = Duration::from_secs(1);

impl LockManager {
    /// Prepares to lead under a name. Of all processes that campaign for the name, at most one
    /// leads. See [`Lead`]. The lease is the lease of the resource `lead:NAME`.
    ///
    /// Here NOTHING IS FENCED: a leader that was paused may go on for a moment after its term, and
    /// only a store that checks the [token](LeaseGuard::token) refuses what it writes.
    /// `fenced_store::FencedLocks::lead` is the same with such a store.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::Error;
    ///
    /// # let memory = lock_core::memory::MemoryBackend::default();
    /// # let locks = lock_core::LockManager::builder().build(memory)?;
    /// let lead = locks.lead("scheduler").metadata("10.0.0.7:8080");
    /// let done = lead.run(async |term| {
    ///     println!("leading under token {}", term.token());
    ///     Ok::<_, Error>("all done")
    /// });
    /// assert_eq!(done.await?, "all done");
    /// # Ok(()) }
    /// ```
    pub fn lead(&self, name: &str) -> Lead<Acquire> {
        Lead::new(self.acquire(lead_resource(name)))
    }
}

/// The resource whose holder leads under a name.
#[must_use]
pub fn lead_resource(name: &str) -> String {
    format!("lead:{name}")
}

/// A type that can campaign: an acquisition that is being prepared, of this crate or of
/// `fenced-store`.
pub trait Candidate: AcquiresLeases + Clone + Send + Sync {
    /// The guard of a leader.
    type Guard: TermGuard;
    /// The error of a campaign.
    type Error: Send;

    /// Waits until the candidate leads.
    fn campaign(self) -> impl Future<Output = Result<Self::Guard, Self::Error>> + Send;

    /// The runtime of its lock service.
    fn runtime(&self) -> &dyn Runtime;

    /// Whether another campaign may succeed.
    fn may_pass(error: &Self::Error) -> bool;
}

/// The guard of a leader.
pub trait TermGuard: Send + Sync + 'static {
    /// Its lease.
    fn lease(&self) -> &LeaseGuard;

    /// Whether the lease is known to be over.
    fn is_over(&self) -> bool {
        !self.lease().is_held()
    }

    /// Gives the lease back.
    fn resign(self) -> impl Future<Output = Result<Released, Error>> + Send;
}

impl Candidate for Acquire {
    type Guard = LeaseGuard;
    type Error = Error;

    async fn campaign(self) -> Result<LeaseGuard, Error> {
        self.await
    }

    fn runtime(&self) -> &dyn Runtime {
        self.locks.runtime()
    }

    fn may_pass(error: &Error) -> bool {
        error.may_pass()
    }
}

impl TermGuard for LeaseGuard {
    fn lease(&self) -> &LeaseGuard {
        self
    }

    async fn resign(self) -> Result<Released, Error> {
        self.release().await
    }
}

/// A candidacy that is being prepared. Call [`run`](Self::run) to do something while leading, or
/// [`campaign`](Self::campaign) for a single [`Term`].
///
/// A term is a lease, and its fencing token is the number of the term. Where the lock service has a
/// queue, candidates lead in the order in which they have campaigned.
#[derive(Clone, Debug)]
#[must_use = "the candidate does not campaign until `run` or `campaign` is called"]
pub struct Lead<C> {
    candidate: C,
}

impl<C> Lead<C> {
    /// Makes a candidacy. The candidate acquires the [resource](crate::backend::lead_resource) of a
    /// name.
    pub const fn new(candidate: C) -> Self {
        Self { candidate }
    }
}

impl<C: Candidate> AcquiresLeases for Lead<C> {
    fn lease_settings(&mut self) -> &mut LeaseSettings {
        self.candidate.lease_settings()
    }
}

impl<C: Candidate> Lead<C> {
    crate::lease_settings!();

    /// Waits until this candidate leads, in the queue if there is one.
    ///
    /// # Errors
    /// As awaiting the acquisition does.
    ///
    /// # Cancel safety
    /// As the acquisition: its place in the queue is given up.
    pub async fn campaign(&self) -> Result<Term<C::Guard>, C::Error> {
        let guard = self.candidate.clone().campaign().await?;
        let term = Term { guard };
        info!(resource = %term.lease().resource(), token = %term.lease().token(), "leading");
        Ok(term)
    }

    /// Leads whenever this candidate is elected, until the section ends. Then it resigns, and
    /// returns the result of the section.
    ///
    /// The section is dropped at its present await when its term is [about to end](Term::lost), and
    /// is called again in the next term. It is also called again if it ended with an error in a
    /// term that was over, for example because a store refused a write. While the lock service
    /// cannot be reached, is failing over or is overloaded ([`Error::may_pass`]), the candidate
    /// campaigns again, after pauses of 0.2 to 10 s.
    ///
    /// To stop, drop the future: the lease is released, and the next in line leads.
    ///
    /// # Spawning
    /// The future can be spawned if the section owns what it uses:
    ///
    /// ```
    /// # async fn f(locks: lock_core::LockManager) {
    /// let name = String::from("moved in");
    /// tokio::spawn(async move {
    ///     let lead = locks.lead("scheduler");
    ///     lead.run(async move |term| Ok::<_, lock_core::Error>(println!("{name} {term:?}"))).await
    /// });
    /// # }
    /// ```
    ///
    /// A section that borrows from its surroundings can be awaited but not spawned, because Rust
    /// cannot say yet that the futures of such a closure are `Send`. Move a clone or an `Arc` in.
    ///
    /// ```compile_fail
    /// # async fn f(locks: lock_core::LockManager) {
    /// tokio::spawn(async move {
    ///     let name = String::from("borrowed");
    ///     let lead = locks.lead("scheduler");
    ///     lead.run(async |term| Ok::<_, lock_core::Error>(println!("{name} {term:?}"))).await
    /// });
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of the section, or of a campaign that would fail again, such as an invalid name.
    ///
    /// # Cancel safety
    /// The section is dropped and the lease released.
    pub async fn run<T, E, F>(self, section: F) -> Result<T, E>
    where
        F: AsyncFnMut(&Term<C::Guard>) -> Result<T, E>,
        E: From<C::Error>,
    {
        self.run_through(|_| false, section).await
    }

    /// As [`run`](Self::run), and goes on after those errors of the section that may pass, such as
    /// a failover of a database. The section is called again in the same term, after pauses of 0.2
    /// to 10 s. The pauses start again at 0.2 s when the section has gone on for 1 s, and for
    /// longer than the last pause.
    ///
    /// # Errors
    /// As [`run`](Self::run), but the error of the section only if `passes` returns false for it.
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    pub async fn run_through<T, E, P, F>(self, passes: P, mut section: F) -> Result<T, E>
    where
        P: Fn(&E) -> bool + Sync,
        F: AsyncFnMut(&Term<C::Guard>) -> Result<T, E>,
        E: From<C::Error>,
    {
        let mut pauses = AGAIN.pauses();
        loop {
            let term = match self.campaign().await {
                Ok(term) => term,
                Err(error) if C::may_pass(&error) => {
                    // Endless, for the policy has no limit.
                    let runtime = self.candidate.runtime();
                    runtime
                        .sleep(pauses.next(runtime).unwrap_or_default())
                        .await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            pauses = AGAIN.pauses();
            // The loss first: a leader that was paused learns of it before its section goes on.
            let ended = tokio::select! {
                biased;
                lost = term.lost() => {
                    info!(%lost, "not leading any more");
                    None
                }
                ended = in_term(&term, &passes, &mut section) => Some(ended),
            };
            // A failure because another candidate leads is no reason to stop.
            let ended = ended.filter(|ended| ended.is_ok() || !term.guard.is_over());
            // After the end of a term, no release is waited for, because the lease has ended.
            if !term.guard.is_over()
                && let Err(error) = term.resign().await
            {
                debug!(%error, "release failed, the watchdog goes on with it");
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }
}

/// Calls the section again after errors that may pass.
async fn in_term<G, T, E, P, F>(term: &Term<G>, passes: &P, section: &mut F) -> Result<T, E>
where
    P: Fn(&E) -> bool + Sync,
    G: TermGuard,
    F: AsyncFnMut(&Term<G>) -> Result<T, E>,
{
    let (mut pauses, runtime) = (AGAIN.pauses(), term.lease().runtime());
    let mut last = RECOVERED;
    loop {
        let called = runtime.now();
        match section(term).await {
            Err(error) if passes(&error) && !term.guard.is_over() => {
                let resource = term.lease().resource();
                info!(%resource, "the section of a leader has failed, and is called again");
                if runtime.now().since(called) > last {
                    pauses = AGAIN.pauses();
                }
                let pause = pauses.next(runtime).unwrap_or_default();
                last = pause.max(RECOVERED);
                runtime.sleep(pause).await;
            }
            ended => return ended,
        }
    }
}

/// The time in which a candidate leads. It dereferences to the guard of the lease.
///
/// # Dropping
/// As dropping the guard of its lease. The next in line leads shortly afterwards.
#[must_use = "dropping it gives the lead away"]
#[clippy::has_significant_drop]
pub struct Term<G: TermGuard> {
    guard: G,
}

impl<G: TermGuard> Term<G> {
    /// Completes when the leader has to step down: when a sixth of the ttl is left and no renewal
    /// has succeeded, by the local clock, or earlier if the lease is lost.
    ///
    /// The lock service counts the ttl from later on, so the next leader begins after this moment.
    /// Use this to stop work, not to decide whether a write is allowed: after a pause of the
    /// process it completes too late.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> Lost {
        let (lease, margin) = (self.lease(), self.lease().status.ttl().get() / MARGIN);
        loop {
            let left = match lease.remaining() {
                Ok(left) => left.saturating_sub(margin),
                Err(lost) => return lost,
            };
            if left.is_zero() {
                let sequencer = lease.sequencer();
                let resource = sequencer.resource().clone();
                return Lost::new(resource, sequencer.token(), LostReason::Expired);
            }
            tokio::select! {
                biased;
                lost = lease.lost() => return lost,
                () = lease.runtime().sleep(left) => {}
            }
        }
    }

    /// Gives up the lead. The next in line leads at once.
    ///
    /// # Errors
    /// As [`LeaseGuard::release`].
    ///
    /// # Cancel safety
    /// As [`LeaseGuard::release`]: the watchdog finishes the release.
    pub async fn resign(self) -> Result<Released, Error> {
        self.guard.resign().await
    }

    fn lease(&self) -> &LeaseGuard {
        self.guard.lease()
    }
}

impl<G: TermGuard> Deref for Term<G> {
    type Target = G;

    fn deref(&self) -> &G {
        &self.guard
    }
}

impl<G: TermGuard> fmt::Debug for Term<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Term").field(self.lease()).finish()
    }
}
