//! A lock service that claims no extension passes the conformance cases of the clauses without
//! extensions, and answers that an extension is unsupported.

use std::{sync::Arc, time::Duration};

use lock_core::{InitialToken, backend::LockService, memory::MemoryBackend};
use lock_testing::{ManualClock, conformance::Harness};

use crate::bare::Bare;

struct Poor {
    clock: ManualClock,
    backend: Arc<Bare>,
}

impl Poor {
    fn fresh() -> Self {
        let clock = ManualClock::new();
        let service = MemoryBackend::new(Arc::new(clock.clone()), InitialToken::Clock);
        Self {
            clock,
            backend: Arc::new(Bare(service)),
        }
    }
}

impl Harness for Poor {
    fn backend(&self) -> LockService {
        Arc::clone(&self.backend).into()
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

lock_testing::conformance_tests!(poor, Poor::fresh());
