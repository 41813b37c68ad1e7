//! Accepts connections and ends them in good order. `axum::serve` has no time limit for the head
//! of a request, and at the end waits for a client that has sent half of one.

use std::{io, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request, serve::Listener};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};
use tower_service::Service;

use super::{caller::Caller, under_way::UnderWay, unread::Unread};

/// The longest head of a request, of whose headers a connection keeps as much.
const HEAD_LEN_MAX: usize = 64 << 10;

/// How long the head of a request may take to arrive, and how long a connection may be idle.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);

/// How long a connection without a request may stay after the gateway was asked to stop: for the
/// last answer to leave, and for a request to begin that was on its way.
const FAREWELL: Duration = Duration::from_millis(500);

/// How long requests may take to be done, and answers to leave, once the gateway is to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(20);

/// Serves so many connections at once until the gateway is closing, and then until every request
/// has its answer, as far as its client reads it, and whatever else counts as handled is done.
///
/// # Errors
/// If requests, or writes that they have begun, are not done in time.
///
/// # Cancel safety
/// Dropping it drops all connections.
pub(super) async fn serve(
    mut listener: TcpListener,
    router: Router,
    is_closing: watch::Receiver<bool>,
    limit: usize,
    handled: UnderWay,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    let mut closing = is_closing.clone();
    let places = Arc::new(Semaphore::new(limit));
    loop {
        // Those who find no place wait in the queue of the operating system.
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, Listener::accept(&mut listener).await)
        };
        tokio::select! {
            (place, (stream, _)) = next => {
                let (closing, handled) = (is_closing.clone(), handled.clone());
                let serving = connection(stream, router.clone(), closing, handled);
                connections.spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            Some(_) = connections.join_next() => {}
            () = closed(&mut closing) => break,
        }
    }
    drop(listener);
    drain(connections, &handled).await
}

/// Waits until all connections have ended, and the writes of clients that are gone. When the time
/// is over, only requests count that are not done: a client that does not read its answer must not
/// make the end a failure.
async fn drain(mut connections: JoinSet<()>, handled: &UnderWay) -> io::Result<()> {
    let all = async {
        while connections.join_next().await.is_some() {}
        handled.over().await;
    };
    if timeout(DRAIN_TIME_MAX, all).await.is_ok() {
        return Ok(());
    }
    if handled.is_none() {
        tracing::warn!("answers that were not read within {DRAIN_TIME_MAX:?} are cut off");
        return Ok(());
    }
    Err(io::ErrorKind::TimedOut.into())
}

async fn connection(
    stream: TcpStream,
    router: Router,
    closing: watch::Receiver<bool>,
    handled: UnderWay,
) {
    match Caller::of(&stream) {
        Ok(caller) => speak(stream, caller, router, closing, handled).await,
        Err(error) => tracing::error!(%error, "a connection cannot be served"),
    }
}

/// Serves one connection. Once the gateway is closing, the requests that are under way are
/// finished and half a request is not waited for.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    caller: impl Clone + Send + Sync + 'static,
    router: Router,
    mut closing: watch::Receiver<bool>,
    handled: UnderWay,
) {
    let under_way = UnderWay::none();
    let service = service_fn(|mut request: Request<Incoming>| {
        let request_ends = under_way.one_more();
        request.extensions_mut().insert(caller.clone());
        let (mut router, handled) = (router.clone(), handled.clone());
        async move {
            // Only now: one that was read behind an answer is not begun before that has left.
            let _handled = handled.one_more();
            let response = router.call(request.map(Body::new)).await;
            response.map(|response| request_ends.until_end_of(response))
        }
    });
    let stream = Unread::new(stream, under_way.clone());
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_LEN_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = closed(&mut closing) => {
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                ended = serving.as_mut() => ended,
                () = under_way.quiet(FAREWELL) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Resolves when the gateway has been asked to stop, or is gone altogether.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _gone = closing.wait_for(|closing| *closing).await.is_err();
}

#[cfg(test)]
mod tests;
