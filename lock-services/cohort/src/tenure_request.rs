//! The request for a tenure: it outlives the waiter that sends it.

use super::{Cohort, debt::Debt, tenure::Asking, waiters::Answer};
use lock_core::{AttemptRef, BoxFuture, Error, LockService, Operation, Released};

/// A request for a tenure that is under way.
pub(super) type Request = BoxFuture<'static, Reply>;

/// The result of such a request.
pub(super) struct Reply {
    paid: Vec<(Debt, Released)>,
    answer: Answer,
}

/// A request that is driven by the waiter at the head. If that waiter goes away, the request is
/// parked and the next head drives it on, so that the process keeps its place in the service's
/// queue.
struct Driven<'a> {
    cohort: &'a Cohort,
    tenure: &'a AttemptRef,
    request: Option<Request>,
}

impl Cohort {
    /// Pays the debts and asks for a tenure, or goes on with a request for it that was parked.
    ///
    /// # Cancel safety
    /// Cancel safe: the next call for the same tenure goes on.
    pub(super) async fn ask(&self, asking: &Asking, debts: Vec<Debt>) {
        let tenure = &asking.request.attempt;
        let parked = self.state().parked.remove(tenure);
        let request = parked.unwrap_or_else(|| self.request(asking.clone(), debts));
        let reply = Driven {
            cohort: self,
            tenure,
            request: Some(request),
        }
        .reply()
        .await;
        let abandoned = {
            let (mut state, now) = self.state_now();
            for (debt, answer) in &reply.paid {
                state.lines.paid(debt, *answer, now);
            }
            state.lines.answered(asking, reply.answer, now);
            state.take_abandoned()
        };
        // Outside the lock, because dropping a request may do anything.
        drop(abandoned);
    }

    fn request(&self, asking: Asking, debts: Vec<Debt>) -> Request {
        let service = self.service.clone();
        Box::pin(async move {
            let mut paid = Vec::new();
            for debt in debts {
                match debt.pay(&service).await {
                    Ok(answer) => paid.push((debt, answer)),
                    Err(error) => {
                        let answer = Err(not_sent(&asking, &service, error));
                        return Reply { paid, answer };
                    }
                }
            }
            let answer = service.acquire(&asking.request).await;
            Reply { paid, answer }
        })
    }
}

impl Driven<'_> {
    async fn reply(mut self) -> Reply {
        let reply = match &mut self.request {
            Some(request) => request.await,
            None => std::future::pending().await,
        };
        self.request = None;
        reply
    }
}

impl Drop for Driven<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            self.cohort.park(self.tenure, request);
        }
    }
}

/// The error if an older tenure is in the way and could not be ended.
fn not_sent(asking: &Asking, service: &LockService, error: Error) -> Error {
    Error::not_applied(error.kind(), Operation::Acquire, service.kind())
        .on(&asking.request.attempt.resource)
        .because("an earlier lease of this process could not be ended")
        .caused_by(error)
}
