//! Processes that are stopped, without the harness that stops them at every await.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{cell::Cell, sync::Arc, time::Duration};

use futures_util::future::join;
use lock_core::{
    FencingToken, InitialToken, Operation, ResourceName, Ttl,
    backend::{LockBackend, Runtime},
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, ManualClock, Process, Until};

const TTL: Ttl = Ttl::secs(9);

struct World {
    clock: ManualClock,
    service: MemoryBackend,
    chaos: Chaos,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new();
        let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
        let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::At(FencingToken::MIN));
        Self {
            chaos: Chaos::new(Arc::new(service.clone()), timer),
            service,
            clock,
        }
    }

    fn process(&self) -> Process {
        Process::start(Arc::new(self.chaos.clone()), &self.clock)
    }

    async fn is_free(&self) -> bool {
        let resource = ResourceName::new("r").unwrap();
        let inspection = self.service.inspect(&resource).await.unwrap();
        inspection.holder.is_none()
    }
}

/// Gives turns to all other tasks, far more than any watchdog needs.
async fn turns() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Catches: a process that sends one more request when it is frozen.
#[tokio::test]
async fn a_frozen_process_does_not_even_send_what_it_was_about_to() {
    // The watchdog has several reasons to go on at the same time. It stops, whichever it looks at
    // first.
    for _ in 0..32 {
        let (world, second) = (World::new(), Duration::from_secs(1));
        let process = world.process();
        let until = Until::Moment(world.clock.now() + second);
        world
            .chaos
            .next(Operation::Release, Fault::DelayRequest(until));
        drop(process.locks().acquire("r").ttl(TTL).await.unwrap());
        turns().await;
        assert_eq!(world.chaos.counts(Operation::Release).delayed, 1);

        process.freeze();
        world.clock.advance(second);
        turns().await;
        assert!(!world.is_free().await);
        process.thaw();
        turns().await;
        assert!(world.is_free().await);
    }
}

/// Catches: a process that starts something, or takes one step more, while it stands still.
#[tokio::test]
async fn a_task_of_a_process_stops_with_it() {
    let world = World::new();
    let (process, steps) = (world.process(), Cell::new(0));
    process.freeze();
    let counting = async {
        for _ in 0..10 {
            steps.set(steps.get() + 1);
            tokio::task::yield_now().await;
        }
        "done"
    };
    let stopping = async {
        turns().await;
        assert_eq!(steps.get(), 0);
        process.thaw();
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        process.freeze();
        let before = steps.get();
        assert!((1..10).contains(&before), "{before}");
        turns().await;
        assert_eq!(steps.get(), before);
        process.thaw();
    };
    let (output, ()) = join(process.run(counting), stopping).await;
    assert_eq!((output, steps.get()), ("done", 10));
}
