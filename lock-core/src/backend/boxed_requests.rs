use std::{fmt, time::Duration};

use crate::{
    BoxFuture, Error,
    acquisition::{Reply, Request, Requests, Wake},
};

/// The [`Requests`] of a lock service behind a pointer. A wrapper around a lock service passes the
/// requests on.
pub struct BoxedRequests<'a>(Box<dyn Boxed + 'a>);

trait Boxed: Send + Sync {
    fn hears(&self) -> bool;
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Reply, Error>>;
    fn has_copied(&self) -> bool;
    fn longest_request(&self) -> Duration;
    fn woken(&self) -> BoxFuture<'_, Wake>;
}

impl<R: Requests + Send> Boxed for R {
    fn hears(&self) -> bool {
        Requests::hears(self)
    }

    fn send(&self, request: Request) -> BoxFuture<'_, Result<Reply, Error>> {
        Box::pin(Requests::send(self, request))
    }

    fn has_copied(&self) -> bool {
        Requests::has_copied(self)
    }

    fn longest_request(&self) -> Duration {
        Requests::longest_request(self)
    }

    fn woken(&self) -> BoxFuture<'_, Wake> {
        Box::pin(Requests::woken(self))
    }
}

impl<'a> BoxedRequests<'a> {
    pub(super) fn new(requests: impl Requests + Send + 'a) -> Self {
        Self(Box::new(requests))
    }
}

impl Requests for BoxedRequests<'_> {
    fn hears(&self) -> bool {
        self.0.hears()
    }

    async fn send(&self, request: Request) -> Result<Reply, Error> {
        self.0.send(request).await
    }

    fn has_copied(&self) -> bool {
        self.0.has_copied()
    }

    fn longest_request(&self) -> Duration {
        self.0.longest_request()
    }

    async fn woken(&self) -> Wake {
        self.0.woken().await
    }
}

impl fmt::Debug for BoxedRequests<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedRequests").finish_non_exhaustive()
    }
}
