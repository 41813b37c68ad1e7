//! Two processes on one lock service and one clock, with an await there and back for every request.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use lock_core::{
    FencingToken, HolderView, InitialToken, LockManager, ResourceName, Ttl, backend::Runtime,
    memory::MemoryBackend,
};
use lock_testing::{Chaos, ManualClock, Process};

pub(crate) const TTL: Ttl = Ttl::secs(9);

pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) chaos: Chaos,
    pub(crate) ours: Process,
    pub(crate) theirs: Process,
}

pub(crate) fn world() -> World {
    let clock = ManualClock::new();
    let first = InitialToken::At(FencingToken::MIN);
    let service = MemoryBackend::new(Arc::new(clock.clone()), first);
    let chaos = Chaos::new(Arc::new(service), Arc::new(clock.clone()));
    let process = || Process::start(Arc::new(chaos.clone()), &clock);
    World {
        ours: process(),
        theirs: process(),
        clock,
        chaos,
    }
}

impl World {
    pub(crate) fn locks(&self) -> &LockManager {
        self.ours.locks()
    }

    pub(crate) async fn holder(&self, resource: &str) -> Option<HolderView> {
        let resource = ResourceName::new(resource).unwrap();
        let inspection = self.theirs.locks().inspect(&resource).await.unwrap();
        inspection.holder
    }

    /// Does work that waits for an event that never comes, and moves the clock until the work ends.
    pub(crate) async fn in_vain<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = yield_to_others() => {}
            }
            let wake = self.clock.next_wake().expect("it waits for a moment");
            self.clock.advance(wake.since(self.clock.now()));
        }
    }

    /// Lets the other tasks run until the resource is free.
    pub(crate) async fn until_free(&self, resource: &str) {
        for _ in 0..10_000 {
            if self.holder(resource).await.is_none() {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{resource} is held for ever");
    }
}

/// Lets the other tasks do what is due.
pub(crate) async fn yield_to_others() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Polls a future this many times, also when it was not woken. Returns true if it completed.
pub(crate) async fn poll_times(future: impl Future, times: usize) -> bool {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|cx| {
        if polls == times {
            return Poll::Ready(false);
        }
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if polls == times => Poll::Ready(false),
            Poll::Pending => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await
}
