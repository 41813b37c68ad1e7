//! The in-process backend passes the conformance cases, on a clock that stands still.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Extension, InitialToken,
    backend::{LockBackend, LockService},
    memory::MemoryBackend,
};
use lock_testing::{
    ManualClock,
    conformance::{Harness, RealTime},
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
