use std::sync::Arc;

use super::{
    Shared,
    pending_release::{self, Ending, PendingRelease},
    queue::Step,
    runtime_ended,
    shared_lease::Asking,
    waiters::Answer,
};
use lock_core::{Error, ResourceName};
use tokio::sync::Notify;

/// The task of one queue: it asks the service for a shared lease, ends it, and watches its
/// deadline, whether or not any waiter is polled. It ends when nothing is left of the queue.
pub(super) struct Driver {
    cohort: Arc<Shared>,
    resource: ResourceName,
    wake: Arc<Notify>,
    is_done: bool,
}

impl Driver {
    pub(super) const fn new(
        cohort: Arc<Shared>,
        resource: ResourceName,
        wake: Arc<Notify>,
    ) -> Self {
        Self {
            cohort,
            resource,
            wake,
            is_done: false,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let step = {
                let (mut queues, now) = self.cohort.queues_now();
                queues.next_step(&self.resource, now)
            };
            match step {
                Step::Complete(Ending { pending, answer }) => {
                    let answer = answer.await;
                    self.cohort.ended(&pending, &answer);
                }
                Step::End(pending) => {
                    drop(self.end(&pending).await);
                }
                Step::Ask(asking, pending) => self.ask(&asking, &pending).await,
                Step::Watch(until) => tokio::select! {
                    () = self.wake.notified() => {}
                    () = self.cohort.clock.sleep_until(until) => {}
                },
                Step::Done => {
                    self.is_done = true;
                    return;
                }
            }
        }
    }

    async fn end(&self, pending: &PendingRelease) -> pending_release::Answer {
        let answer = pending.end(&self.cohort.service).await;
        self.cohort.ended(pending, &answer);
        answer
    }

    /// Asks for a shared lease until there is an answer, or nobody waits for it any more.
    async fn ask(&self, asking: &Asking, pending: &[PendingRelease]) {
        tokio::select! {
            biased;
            answer = self.answer(asking, pending) => {
                let (mut queues, now) = self.cohort.queues_now();
                queues.answered(asking, answer, now);
            }
            // What was sent is cancelled by the next step.
            () = self.given_up(asking) => {}
        }
    }

    async fn answer(&self, asking: &Asking, pending: &[PendingRelease]) -> Answer {
        for pending in pending {
            self.end(pending).await.map_err(not_sent)?;
        }
        self.cohort.service.acquire(&asking.request).await
    }

    async fn given_up(&self, asking: &Asking) {
        while self.cohort.queues().is_asking_for(&asking.request.attempt) {
            self.wake.notified().await;
        }
    }
}

impl Drop for Driver {
    /// Runs after the driver's work, or when the runtime is dropped in the middle of it.
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let queue = self.cohort.queues().remove(&self.resource);
        if let Some(queue) = queue {
            queue.abandoned(&runtime_ended());
        }
    }
}

/// The error if an older shared lease is in the way and could not be ended.
fn not_sent(error: Error) -> Error {
    Error::not_applied(error.kind())
        .because("an earlier lease of this process could not be ended")
        .caused_by(error)
}
