//! The in-process backend passes what every backend has to pass, on a clock that stands still.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_core::{Clock, Extension, InitialToken, LockBackend, LockService, memory::MemoryBackend};
use lock_testing::{
    ManualClock,
    conformance::{self, Harness, RealTime},
};

struct Memory {
    clock: ManualClock,
    backend: Arc<MemoryBackend>,
}

impl Memory {
    fn fresh() -> Self {
        let clock = ManualClock::new();
        let backend = MemoryBackend::new(Arc::new(clock.clone()), InitialToken::Clock);
        Self {
            clock,
            backend: Arc::new(backend),
        }
    }
}

impl Harness for Memory {
    fn backend(&self) -> LockService {
        Arc::clone(&self.backend).into()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

lock_testing::conformance_tests!(memory, Memory::fresh());
lock_testing::conformance_tests!(
    memory_in_real_time,
    RealTime::new(Arc::new(MemoryBackend::default()))
);

/// A case is left out where its extension is not claimed.
#[test]
fn memory_claims_every_extension() {
    let claimed = MemoryBackend::default().capabilities().extensions;
    assert_eq!(claimed, Extension::ALL);
}

/// A machine that stalls, once, for longer than a short lease and its delay.
struct Stalling {
    memory: Memory,
    has_stalled: AtomicBool,
}

impl Stalling {
    fn once() -> Self {
        Self {
            memory: Memory::fresh(),
            has_stalled: AtomicBool::new(false),
        }
    }
}

impl Harness for Stalling {
    fn backend(&self) -> LockService {
        self.memory.backend()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.memory.clock()
    }

    async fn pass(&self, time: Duration) {
        let stall = match self.has_stalled.swap(true, Ordering::Relaxed) {
            true => Duration::ZERO,
            false => Duration::from_secs(1),
        };
        self.memory.pass(time + stall).await;
    }
}

#[tokio::test]
async fn a_machine_that_stalls_fails_no_backend() {
    conformance::replay(&Stalling::once()).await;
    conformance::expiry(&Stalling::once()).await;
}
