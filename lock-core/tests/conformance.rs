//! The in-process backend passes what every backend has to pass, on a clock that stands still.
#![cfg(all(feature = "conformance", feature = "memory", feature = "test-util"))]

use std::{sync::Arc, time::Duration};

use lock_core::{
    Clock, InitialToken, LockBackend, conformance::Harness, memory::MemoryBackend,
    test_util::ManualClock,
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
    fn backend(&self) -> Arc<dyn LockBackend> {
        Arc::<MemoryBackend>::clone(&self.backend)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

lock_core::conformance_tests!(memory, Memory::fresh());
