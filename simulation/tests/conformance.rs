//! Each variant of the simulated service keeps the contract of lock services, over a network that
//! loses nothing.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Extension,
    backend::{LockBackend, LockService, Moment, Runtime, TokioRuntime},
};
use lock_testing::{
    ManualClock,
    conformance::{Harness, RealTime},
};
use simulation::service::{Event, Fate, Leg, Service, Settings, SimBackend, Variant};

/// A client of a new service with these settings.
fn connected(settings: Settings, runtime: Arc<dyn Runtime>) -> (Service, SimBackend) {
    let calm = |_, _: Leg, _| Fate::default();
    let service = Service::new(
        settings,
        Arc::clone(&runtime),
        calm,
        |_: Moment, _: Event| {},
    );
    let client = service.client(0, runtime);
    (service, client)
}

/// A service on a clock that stands still. Waiters are served by pushes.
struct Pushed {
    clock: ManualClock,
    service: Service,
    backend: Arc<SimBackend>,
}

impl Pushed {
    fn fresh(variant: Variant) -> Self {
        let clock = ManualClock::new();
        let mut settings = Settings::new(variant);
        // The cases move the clock while requests are under way, and waiters wait for pushes.
        settings.request_timeout = Duration::from_secs(60);
        settings.look_again = Duration::from_secs(10);
        let (service, backend) = connected(settings, Arc::new(clock.clone()));
        let backend = Arc::new(backend);
        Self {
            clock,
            service,
            backend,
        }
    }
}

impl Harness for Pushed {
    fn backend(&self) -> LockService {
        Arc::clone(&self.backend).into()
    }

    /// Moves the clock when all messages have arrived and were read.
    async fn pass(&self, time: Duration) {
        let mut calm = 0;
        while calm < 3 {
            tokio::task::yield_now().await;
            calm = if self.service.under_way() == 0 {
                calm + 1
            } else {
                0
            };
        }
        self.clock.advance(time);
    }
}

/// A service in real time, because its waiters look by themselves.
fn polled(variant: Variant, hears: bool) -> RealTime {
    let mut settings = Settings::new(variant);
    settings.hears = hears;
    settings.look_again = Duration::from_millis(10);
    let (_, backend) = connected(settings, Arc::new(TokioRuntime));
    RealTime::new(backend)
}

lock_testing::conformance_tests!(pushes, Pushed::fresh(Variant::Pushes));
lock_testing::conformance_tests!(offers, Pushed::fresh(Variant::Offers));
lock_testing::conformance_tests!(polls, polled(Variant::Polls, true));
lock_testing::conformance_tests!(hints, polled(Variant::Hints, true));
lock_testing::conformance_tests!(unqueued, polled(Variant::Unqueued, true));
lock_testing::conformance_tests!(deaf, polled(Variant::Polls, false), only
    waits_until_release waits_until_expiry waits_by_the_present_lease wait_deadline
    cancelled_at_every_await);

/// A case is left out where its extension is not claimed.
#[tokio::test]
async fn a_service_with_a_queue_claims_every_extension() {
    for variant in [
        Variant::Pushes,
        Variant::Offers,
        Variant::Polls,
        Variant::Hints,
    ] {
        let (_, backend) = connected(Settings::new(variant), Arc::new(TokioRuntime));
        assert_eq!(backend.capabilities().extensions, Extension::ALL);
    }
}
