use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{
    Chaos, Fault,
    request::{Sent, no_answer},
    wake_ups::Heard,
};
use lock_core::{
    Error,
    backend::{AcquireRequest, BoxedRequests, Reply, Request, Requests, Wake},
};

/// The requests of one attempt, through chaos.
pub(super) struct Attempted<'a> {
    chaos: &'a Chaos,
    request: &'a AcquireRequest,
    requests: BoxedRequests<'a>,
    /// Whether a copy of an answered request has been kept.
    copied: AtomicBool,
    heard: Heard,
}

impl<'a> Attempted<'a> {
    pub(super) fn new(chaos: &'a Chaos, request: &'a AcquireRequest) -> Self {
        Self {
            chaos,
            request,
            requests: chaos.service.requests(request),
            copied: AtomicBool::new(false),
            heard: Heard::default(),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Requests for Attempted<'_> {
    fn hears(&self) -> bool {
        self.requests.hears()
    }

    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let sent = match request {
            Request::Cancel => Sent::Cancel(self.request.attempt.clone()),
            request => Sent::Acquire(self.request.clone(), request),
        };
        let lost = |why: &str| Err(no_answer(why));
        let sends = || self.requests.send(request);
        let (fault, answer) = self.chaos.send_noting(sent, lost, sends).await;
        if matches!(fault, Fault::Duplicate) {
            self.copied.store(true, Ordering::Relaxed);
        }
        answer
    }

    fn has_copied(&self) -> bool {
        self.copied.load(Ordering::Relaxed) || self.requests.has_copied()
    }

    fn longest_request(&self) -> Duration {
        self.requests.longest_request()
    }

    async fn woken(&self) -> Wake {
        let Self { chaos, request, .. } = self;
        let attempt = &request.attempt;
        chaos
            .wake_ups
            .next(attempt, &self.heard, &self.requests)
            .await
    }
}
