//! A service with a cohort in front of it passes what every backend has to pass: with requests that
//! go straight to the service, and with those that wait in the line of the process.

use std::{sync::Arc, time::Duration};

use lock_core::{Clock, InitialToken, LockService, memory::MemoryBackend};
use lock_testing::{ManualClock, conformance::Harness};
use palisade_cohort::Cohort;

use crate::joining::Joining;

/// More than any waiter needs.
const TURNS: usize = 100;

struct InProcess {
    clock: ManualClock,
    backend: LockService,
}

impl InProcess {
    fn fresh(front: impl FnOnce(Cohort) -> LockService) -> Self {
        let clock = ManualClock::new();
        let timer: Arc<dyn Clock> = Arc::new(clock.clone());
        let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
        let cohort = Cohort::new(service, timer, Cohort::PASSES);
        Self {
            clock,
            backend: front(cohort),
        }
    }

    fn straight() -> Self {
        Self::fresh(LockService::from)
    }

    fn joined() -> Self {
        Self::fresh(|cohort| Joining(cohort).into())
    }
}

impl Harness for InProcess {
    fn backend(&self) -> LockService {
        self.backend.clone()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    async fn pass(&self, time: Duration) {
        // The waiters of a cohort act for it: they have to have their turns before time goes on.
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
        self.clock.advance(time);
    }
}

lock_testing::conformance_tests!(straight, InProcess::straight());
lock_testing::conformance_tests!(joined, InProcess::joined());
