use std::{sync::Arc, time::Duration};

use tokio::sync::{Notify, oneshot};

use super::{
    Cohort,
    line::Duty,
    lines::{Place, Ticket},
    waiters::Answer,
};
use lock_core::{Attempt, Error, ErrorKind, Operation, Wait};

/// One acquire that is in line. Dropping it leaves the line.
pub(super) struct Waiting<'a> {
    cohort: &'a Cohort,
    ticket: Ticket,
    answer: oneshot::Receiver<Answer>,
    bell: Arc<Notify>,
    granted: bool,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(cohort: &'a Cohort, place: Place) -> Self {
        let Place {
            ticket,
            answer,
            bell,
        } = place;
        Self {
            cohort,
            ticket,
            answer,
            bell,
            granted: false,
        }
    }

    /// Waits for its turn, and meanwhile does the waiter's duties for the line.
    pub(super) async fn until_answered(mut self, wait: Wait) -> Answer {
        let clock = &*self.cohort.clock;
        loop {
            let duty = {
                let (mut state, now) = self.cohort.state_now();
                state.lines.duty(&self.ticket, now)
            };
            tokio::select! {
                biased;
                answer = &mut self.answer => {
                    return self.answered(answer.unwrap_or_else(|_| Err(self.cancelled())));
                }
                () = self.cohort.perform(duty, &self.bell) => {}
                () = clock.sleep_until(wait.limit()) => return self.give_up().await,
            }
        }
    }

    /// The wait is over. When this returns, the attempt holds nothing and waits for nothing.
    async fn give_up(mut self) -> Answer {
        self.cohort.leave(&self.ticket);
        if let Ok(answer) = self.answer.try_recv() {
            return self.answered(answer);
        }
        let resource = &self.ticket.attempt.resource;
        let settled = self.cohort.settle(resource).await;
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
            .on(&self.ticket.attempt.resource)
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

impl Cohort {
    /// Does one duty of a waiter. Returns when the waiter should look again.
    async fn perform(&self, duty: Duty, bell: &Notify) {
        match duty {
            Duty::None => bell.notified().await,
            Duty::Watch(until) => tokio::select! {
                () = bell.notified() => {}
                () = self.clock.sleep_until(until) => {}
            },
            Duty::Ask(asking, debts) => self.ask(&asking, debts).await,
        }
    }

    /// The time after which the present lease ends unless it is renewed. It is only a hint, and
    /// zero if nobody knows.
    async fn time_left(&self, resource: &lock_core::ResourceName) -> Duration {
        let left = self.state().lines.time_left(resource, self.clock.now());
        if let Some(left) = left {
            return left;
        }
        let seen = self.service.inspect(resource).await.ok();
        let holder = seen.and_then(|inspection| inspection.holder);
        holder.map(|holder| holder.remaining).unwrap_or_default()
    }
}
