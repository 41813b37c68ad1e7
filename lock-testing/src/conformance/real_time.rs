use std::time::Duration;

use lock_core::{Ttl, backend::LockService};

use super::Harness;

/// A backend in real time: whatever has to pass is waited for.
///
/// Its time is that of [`TokioRuntime`](lock_core::backend::TokioRuntime), as for each backend that
/// connects to a server.
#[derive(Clone, Debug)]
pub struct RealTime {
    backend: LockService,
    short: Ttl,
    late: Duration,
}

impl RealTime {
    /// For a service whose leases may be as short as 300 ms and end on time.
    #[must_use]
    pub fn new(backend: impl Into<LockService>) -> Self {
        Self {
            backend: backend.into(),
            short: Ttl::millis(300),
            late: Duration::from_millis(20),
        }
    }

    /// The shortest ttl that the service keeps, and by how much it ends a lease too late.
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
