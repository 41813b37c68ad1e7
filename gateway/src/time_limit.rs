//! A limit on the time that a request takes.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use fenced_http::{Problem, ProblemType};
use futures_util::future::BoxFuture;
use tokio::time::timeout;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Instrument;

use crate::{error::ApiError, under_way::UnderWay};

/// How long requests may take. Cloning is cheap; clones count the same writes.
#[derive(Clone, Debug)]
pub struct TimeLimit {
    limit: Duration,
    /// The writes that the gateway finishes before it ends.
    under_way: UnderWay,
}

impl TimeLimit {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            under_way: UnderWay::default(),
        }
    }

    /// How long a request may take to arrive, and then how long the service of it may take.
    #[must_use]
    pub const fn get(&self) -> Duration {
        self.limit
    }

    pub(crate) const fn under_way(&self) -> &UnderWay {
        &self.under_way
    }

    /// A layer for reads, which may be sent twice. If the limit passes, the answer is a 503 of this
    /// kind.
    #[must_use]
    pub const fn give_up(&self, kind: ProblemType) -> GiveUp {
        GiveUp(self.limit, kind)
    }

    /// Runs a write. A write that has begun is finished, in a task of its own, even if the client
    /// goes away or the limit passes. If the write was given up between the commit and its answer,
    /// the gateway could not say whether it was stored. The write counts as under way until it is
    /// finished, so that the gateway does not end before.
    ///
    /// # Errors
    /// 504 `outcome-unknown` if the limit passes first; otherwise the error of the write.
    ///
    /// # Cancel safety
    /// Cancel safe: the write goes on.
    pub async fn to_the_end<T, E>(
        &self,
        write: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        let one_more = self.under_way.one_more();
        let counted = async move {
            let _until_finished = one_more;
            write.await
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the task ends by itself, within the timeouts of pool and database"
        )]
        let writing = tokio::spawn(counted.in_current_span());
        match timeout(self.limit, writing).await {
            Ok(Ok(written)) => written.map_err(Into::into),
            // After a panic, or the end of the runtime, the outcome is unknown, too.
            Ok(Err(_)) | Err(_) => Err(unknown().into()),
        }
    }
}

fn unknown() -> Problem {
    tracing::error!("a write has no answer in time: its outcome is unknown");
    Problem::new(ProblemType::OUTCOME_UNKNOWN)
        .detail("the write has begun and is not answered yet: read before you retry")
        .with("outcome", "unknown")
}

/// A layer for requests that can be given up half way: reads, and requests that may be sent twice.
/// After this time the answer is a 503 of this kind.
#[derive(Clone, Copy, Debug)]
pub struct GiveUp(pub(crate) Duration, pub(crate) ProblemType);

/// See [`GiveUp`].
#[derive(Clone, Debug)]
pub struct GivingUp<S> {
    inner: S,
    after: GiveUp,
}

impl<S> Layer<S> for GiveUp {
    type Service = GivingUp<S>;

    fn layer(&self, inner: S) -> GivingUp<S> {
        let after = *self;
        GivingUp { inner, after }
    }
}

/// This does not use `from_fn`, because `from_fn` clones all inner services once more for every
/// request.
impl<S> Service<Request> for GivingUp<S>
where
    S: Service<Request, Response = Response>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let GiveUp(limit, kind) = self.after;
        let served = timeout(limit, self.inner.call(request));
        Box::pin(async move { served.await.unwrap_or_else(|_| Ok(too_long(kind))) })
    }
}

fn too_long(kind: ProblemType) -> Response {
    Problem::new(kind)
        .detail("the answer took too long: send the request again")
        .retry_after(Duration::from_secs(1))
        .into_response()
}
