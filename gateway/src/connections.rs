//! Accepts connections and ends them in good order. `axum::serve` has no time limit for the head
//! of a request, and at the end waits for a client that has sent half of one.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use axum::serve::Listener;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

use crate::{
    answer_stream::AnswerStream, caller::Caller, edge::Edge, limits::Limits, under_way::UnderWay,
    unread,
};

/// The longest head of a request, of whose headers a connection keeps as much.
const HEAD_LEN_MAX: usize = 64 << 10;

/// How long the gateway stays, once it is to stop, without a request: one may be on its way.
const FAREWELL: Duration = Duration::from_millis(500);

/// How long requests may take to be done, and answers to leave, once the gateway is to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(20);

/// The connections of a gateway. Dropping it drops them all.
pub(crate) struct Connections {
    edge: Arc<Edge>,
    limits: Limits,
    tasks: JoinSet<()>,
    graceful: GracefulShutdown,
    /// Requests that are being handled, and answers that have not left.
    requests: UnderWay,
    /// Requests that are being handled, and writes that they have begun.
    handled: UnderWay,
}

impl Connections {
    /// None yet. Whatever else counts as handled delays the end.
    pub(crate) fn new(edge: Edge, limits: Limits, handled: UnderWay) -> Self {
        Self {
            edge: Arc::new(edge),
            limits,
            tasks: JoinSet::new(),
            graceful: GracefulShutdown::new(),
            requests: UnderWay::default(),
            handled,
        }
    }

    /// Serves as many connections at once as may be open until the gateway is closing, and then
    /// until every request has its answer, as far as its client reads it, and whatever else counts
    /// as handled is done.
    ///
    /// # Errors
    /// If requests, or writes that they have begun, are not done in time.
    pub(crate) async fn serve(
        mut self,
        mut listener: TcpListener,
        closing: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let places = Arc::new(Semaphore::new(self.limits.connections));
        tokio::pin!(closing);
        loop {
            // Clients that find no place wait in the queue of the operating system.
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, Listener::accept(&mut listener).await)
            };
            tokio::select! {
                biased;
                // However many clients come.
                () = &mut closing => break,
                Some(_) = self.tasks.join_next() => {}
                (place, (stream, _)) = next => match Caller::of(&stream) {
                    Ok(caller) => self.open(stream, caller, place),
                    Err(error) => tracing::error!(%error, "a connection cannot be served"),
                },
            }
        }
        drop(listener);
        self.drain().await
    }

    /// Serves one connection in a task, which keeps its place.
    fn open(
        &mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        caller: impl Clone + Send + Sync + 'static,
        place: impl Send + 'static,
    ) {
        let (edge, requests) = (Arc::clone(&self.edge), self.requests.clone());
        let handled = self.handled.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(caller.clone());
            let (edge, counts) = (Arc::clone(&edge), [requests.clone(), handled.clone()]);
            async move {
                // Only now: a request that was read behind an answer is not begun before the
                // answer has left.
                let _under_way = counts.each_ref().map(UnderWay::one_more);
                let (request, loan) = unread::lend(request);
                let mut answer = edge.answer(request).await;
                loan.settle(&mut answer);
                Ok::<_, Infallible>(answer)
            }
        });
        let silence = self.limits.silence;
        let stream = AnswerStream::new(stream, self.requests.clone(), silence);
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(silence)
            .max_buf_size(HEAD_LEN_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let serving = self.graceful.watch(serving);
        self.tasks.spawn(async move {
            if let Err(error) = serving.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }

    /// Ends all connections when they have no request any more: half a request is not waited for.
    /// Then waits for the writes of clients that are gone. When the time is over, only requests
    /// count that are not done: a client that does not read its answer must not make the end a
    /// failure.
    async fn drain(self) -> io::Result<()> {
        let all = async {
            tokio::select! {
                biased;
                () = self.graceful.shutdown() => {}
                () = self.requests.quiet(FAREWELL) => {}
            }
            self.handled.over().await;
        };
        if timeout(DRAIN_TIME_MAX, all).await.is_ok() {
            return Ok(());
        }
        if self.handled.is_none() {
            tracing::warn!("answers that were not read within {DRAIN_TIME_MAX:?} are cut off");
            return Ok(());
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests;
