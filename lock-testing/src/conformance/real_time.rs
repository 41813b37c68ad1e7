use std::time::Duration;

use lock_core::{Ttl, backend::LockService};

use super::Harness;

/// A backend in real time. A case really waits for time that has to pass.
///
/// Its time is the time of [`TokioRuntime`](lock_core::backend::TokioRuntime), as for each backend
/// that connects to a server.
#[derive(Clone, Debug)]
pub struct RealTime {
    backend: LockService,
    short: Ttl,
    late: Duration,
}

impl RealTime {
    /// A harness for a service whose leases may be as short as 300 ms and end on time.
    #[must_use]
    pub fn new(backend: impl Into<LockService>) -> Self {
        Self {
            backend: backend.into(),
            short: Ttl::millis(300),
            late: Duration::from_millis(20),
        }
    }

    /// Sets the shortest ttl that the service keeps, and the time by which it ends a lease too
    /// late.
    #[must_use]
    pub fn short(mut self, ttl: Ttl, late: Duration) -> Self {
        (self.short, self.late) = (ttl, late);
        self
    }
}

impl Harness for RealTime {
    fn backend(&self) -> LockService {
        self.backend.clone()
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn short(&self) -> Ttl {
        self.short
    }

    fn past_short(&self) -> Duration {
        self.short.get() + self.late
    }
}
