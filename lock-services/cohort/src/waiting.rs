use std::time::Duration;

use tokio::sync::oneshot;

use super::{
    Shared,
    queues::{Place, Ticket},
    waiters::Answer,
};
use lock_core::{Attempt, Error, ErrorKind, Operation, ResourceName, Wait};

/// One acquire that is queued. Dropping it leaves the queue.
pub(super) struct Waiting<'a> {
    cohort: &'a Shared,
    ticket: Ticket,
    answer: oneshot::Receiver<Answer>,
    granted: bool,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(cohort: &'a Shared, place: Place) -> Self {
        let Place { ticket, answer, .. } = place;
        Self {
            cohort,
            ticket,
            answer,
            granted: false,
        }
    }

    /// Waits for its turn.
    pub(super) async fn until_answered(mut self, wait: Wait) -> Answer {
        let clock = &*self.cohort.clock;
        tokio::select! {
            biased;
            answer = &mut self.answer => {
                self.answered(answer.unwrap_or_else(|_| Err(self.cancelled())))
            }
            () = clock.sleep_until(wait.limit()) => self.give_up().await,
        }
    }

    /// The wait is over. When this returns, the attempt holds nothing and waits for nothing.
    async fn give_up(mut self) -> Answer {
        self.cohort.leave(&self.ticket);
        if let Ok(answer) = self.answer.try_recv() {
            return self.answered(answer);
        }
        let resource = &self.ticket.attempt.resource;
        let settled = self.cohort.settle(resource, Operation::Acquire).await;
        settled.map_err(Error::outcome_unknown)?;
        let left = self.cohort.time_left(resource).await;
        Ok(Attempt::Held { retry_after: left })
    }

    fn answered(&mut self, answer: Answer) -> Answer {
        self.granted = matches!(answer, Ok(Attempt::Granted(_)));
        answer
    }

    fn cancelled(&self) -> Error {
        let kind = self.cohort.service.kind();
        Error::not_applied(ErrorKind::Released, Operation::Acquire, kind)
            .because("the attempt was cancelled")
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.granted {
            self.cohort.leave(&self.ticket);
        }
    }
}

impl Shared {
    /// The time after which the present lease ends unless it is renewed. It is only a hint, and
    /// zero if nobody knows.
    async fn time_left(&self, resource: &ResourceName) -> Duration {
        let left = self.queues().time_left(resource, self.clock.now());
        if let Some(left) = left {
            return left;
        }
        let seen = self.service.inspect(resource).await.ok();
        let holder = seen.and_then(|inspection| inspection.holder);
        holder.map(|holder| holder.remaining).unwrap_or_default()
    }
}
