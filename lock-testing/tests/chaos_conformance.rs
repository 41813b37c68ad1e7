//! Chaos without a script has no effect. It passes all cases that its backend passes.

use std::{sync::Arc, time::Duration};

use lock_core::{
    InitialToken,
    backend::{LockService, Runtime},
    memory::MemoryBackend,
};
use lock_testing::{Chaos, ManualClock, conformance::Harness};

struct Calm {
    clock: ManualClock,
    chaos: Chaos,
}

impl Calm {
    fn fresh() -> Self {
        let clock = ManualClock::new();
        let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
        let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
        Self {
            clock,
            chaos: Chaos::new(Arc::new(service), timer),
        }
    }
}

impl Harness for Calm {
    fn backend(&self) -> LockService {
        self.chaos.clone().into()
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

lock_testing::conformance_tests!(calm, Calm::fresh());
