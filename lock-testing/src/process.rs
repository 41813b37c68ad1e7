use std::{pin::pin, sync::Arc};

use tokio::sync::watch;

use super::{ManualClock, round_trip::Link};
use lock_core::{LockManager, backend::LockService};

/// A simulated client process. It has a lock manager of its own, and can be stopped with all its
/// tasks.
///
/// Several processes share one lock service and one clock. A frozen process does nothing, like a
/// process after a SIGSTOP: its watchdog renews and releases nothing, and futures that run in it
/// with [`run`](Process::run) stand still. The clock and the lock service go on. Clones are the
/// same process.
///
/// Between a process and the lock service there is a link: every request has one await before it
/// arrives and one await before its reply is back. A [pause](super::pause) can land in each of
/// them.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_core::Error> {
/// use std::sync::Arc;
///
/// use lock_core::{InitialToken, Ttl, memory::MemoryBackend};
/// use lock_testing::{ManualClock, Process};
///
/// let clock = ManualClock::new();
/// let service = Arc::new(MemoryBackend::new(Arc::new(clock.clone()), InitialToken::Clock));
/// let (ours, theirs) = (Process::start(service.clone(), &clock), Process::start(service, &clock));
///
/// let guard = ours.locks().acquire("account").ttl(Ttl::secs(10)).await?;
/// ours.freeze();
/// clock.advance(Ttl::secs(10).get());
/// let rival = theirs.locks().acquire("account").await?;
/// ours.thaw();
/// assert!(guard.remaining().is_err() && guard.token() < rival.token());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Process {
    locks: LockManager,
    clock: ManualClock,
    frozen: Arc<watch::Sender<bool>>,
}

impl Process {
    /// Starts a process that uses this lock service.
    ///
    /// # Panics
    /// Outside a Tokio runtime, which the watchdog needs, and if the kind of the lock service is
    /// not an [issuer](lock_core::Issuer) name.
    #[must_use]
    pub fn start(service: impl Into<LockService>, clock: &ManualClock) -> Self {
        let link = Link::new(service.into(), Arc::new(clock.clone()));
        let locks = match LockManager::builder().build(link) {
            Ok(locks) => locks,
            Err(error) => panic!("{error}"),
        };
        Self {
            locks,
            clock: clock.clone(),
            frozen: Arc::new(watch::Sender::new(false)),
        }
    }

    /// The lock manager of this process.
    #[must_use]
    pub const fn locks(&self) -> &LockManager {
        &self.locks
    }

    /// The clock of this process.
    #[must_use]
    pub const fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Stops the process at its present step.
    pub fn freeze(&self) {
        self.locks.freeze_watchdog(true);
        self.frozen.send_replace(true);
    }

    /// Lets the process go on.
    pub fn thaw(&self) {
        self.frozen.send_replace(false);
        self.locks.freeze_watchdog(false);
    }

    /// Runs a future in this process: it is polled only while the process is not frozen.
    ///
    /// # Cancel safety
    /// The future is dropped at its present await.
    pub async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut frozen = self.frozen.subscribe();
        loop {
            // Neither wait can fail: the sender is in `self`.
            drop(frozen.wait_for(|frozen| !frozen).await);
            tokio::select! {
                biased;
                _ = frozen.wait_for(|frozen| *frozen) => {}
                output = &mut future => return output,
            }
        }
    }
}
