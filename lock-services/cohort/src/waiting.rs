use std::{future::pending, pin::pin, time::Duration};

use tokio::sync::oneshot;

use super::{
    Shared,
    queues::{Place, Ticket},
    waiters::Answer,
};
use lock_core::{Attempt, Error, ErrorKind, Inspection, Moment, ResourceName, Wait};

/// Longer than it takes around the world and back.
const LOOK_BEFORE: Duration = Duration::from_millis(600);

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

    /// Waits for its turn, and ends with the wait.
    pub(super) async fn until_answered(mut self, wait: Wait) -> Answer {
        let cohort = self.cohort;
        let resource = self.ticket.attempt.resource.clone();
        let mut seen = None;
        let mut look = pin!(cohort.look_before(wait.limit(), &resource));
        loop {
            tokio::select! {
                biased;
                answer = &mut self.answer => {
                    return self.answered(answer.unwrap_or_else(|_| Err(cancelled())));
                }
                inspection = &mut look, if seen.is_none() => seen = Some(inspection),
                () = cohort.clock.sleep_until(wait.limit()) => break,
            }
        }
        // From here on the attempt holds nothing and waits for nothing. If nobody else waits, the
        // driver takes back what it has asked for.
        cohort.leave(&self.ticket);
        if let Ok(answer) = self.answer.try_recv() {
            return self.answered(answer);
        }
        if let Some(left) = cohort.time_left(&resource) {
            return Ok(Attempt::held(left));
        }
        let inspection = match seen {
            Some(inspection) => inspection,
            None => look.await,
        };
        let left = inspection
            .map_err(Error::outcome_unknown)?
            .holder
            .map(|holder| holder.remaining);
        Ok(Attempt::held(left.unwrap_or_default()))
    }

    fn answered(&mut self, answer: Answer) -> Answer {
        self.granted = matches!(answer, Ok(Attempt::Granted(_)));
        answer
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
    /// Looks who has the resource, so long before the wait is over that the answer is there by
    /// then: a service that does not answer this does not answer at all. Of a lease of its own the
    /// process knows without asking.
    async fn look_before(&self, end: Moment, resource: &ResourceName) -> Result<Inspection, Error> {
        if end == Moment::NEVER {
            return pending().await;
        }
        let time = end.since(self.clock.now()).saturating_sub(LOOK_BEFORE);
        self.clock.sleep_until(self.clock.now() + time).await;
        if self.time_left(resource).is_some() {
            self.clock.sleep_until(end).await;
        }
        let unanswered = self.clock.now() + LOOK_BEFORE;
        tokio::select! {
            biased;
            seen = self.service.inspect(resource) => seen,
            () = self.clock.sleep_until(unanswered) => {
                Err(Error::unknown(ErrorKind::Unavailable)
                    .because("no answer before the wait was over"))
            }
        }
    }

    /// The time after which the shared lease ends unless it is renewed.
    fn time_left(&self, resource: &ResourceName) -> Option<Duration> {
        self.queues().time_left(resource, self.clock.now())
    }
}

fn cancelled() -> Error {
    Error::not_applied(ErrorKind::Released).because("the attempt was cancelled")
}
