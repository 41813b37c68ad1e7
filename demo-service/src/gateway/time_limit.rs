//! What becomes of a request that takes too long.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use fenced_http::{Problem, ProblemType};
use tokio::time::timeout;
use tracing::Instrument;

use super::{error::ApiError, under_way::UnderWay};

/// For requests that can be given up half way: reads, and what may be sent twice. 503.
pub(super) async fn give_up(
    State((limit, kind)): State<(Duration, ProblemType)>,
    request: Request,
    next: Next,
) -> Response {
    let served = timeout(limit, next.run(request)).await;
    served.unwrap_or_else(|_| {
        Problem::new(kind)
            .detail("the answer took too long: send the request again")
            .retry_after(Duration::from_secs(1))
            .into_response()
    })
}

/// For writes. One that has begun is finished, in a task of its own, even if the client goes away
/// or the limit passes. If it were given up between the commit and its answer, nobody would know
/// what to tell the client. It counts as under way until it is finished, so that the gateway does
/// not end before.
///
/// # Errors
/// 504 `outcome-unknown` if the limit passes first; otherwise as the write.
pub(super) async fn to_the_end<T, E>(
    limit: Duration,
    under_way: &UnderWay,
    write: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, ApiError>
where
    T: Send + 'static,
    E: Into<ApiError> + Send + 'static,
{
    let one_more = under_way.one_more();
    let counted = async move {
        let _until_finished = one_more;
        write.await
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends by itself, bounded by the timeouts of pool and database"
    )]
    let writing = tokio::spawn(counted.in_current_span());
    match timeout(limit, writing).await {
        Ok(Ok(written)) => written.map_err(Into::into),
        // A panic, or the end of the runtime: as unknown as no answer at all.
        Ok(Err(_)) | Err(_) => Err(unknown().into()),
    }
}

fn unknown() -> Problem {
    tracing::error!("a write has no answer in time: its outcome is unknown");
    Problem::new(ProblemType::OUTCOME_UNKNOWN)
        .detail("the write has begun and is not answered yet: read before you retry")
        .with("outcome", "unknown")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_write_whose_client_is_gone_is_under_way_until_it_is_finished() {
        let under_way = UnderWay::default();
        let (begin, begun) = oneshot::channel::<()>();
        let (finish, finished) = oneshot::channel::<()>();
        let write = async {
            begin.send(()).unwrap();
            finished.await.map_err(|_| unknown())
        };
        let answered = to_the_end(Duration::from_secs(60), &under_way, write).now_or_never();
        assert!(answered.is_none(), "and now the client is gone");
        begun.await.unwrap();
        assert!(!under_way.is_none());
        finish.send(()).unwrap();
        under_way.over().await;
    }
}
