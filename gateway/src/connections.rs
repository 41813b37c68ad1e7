//! Accepts connections and ends them in good order. `axum::serve` has no time limit for the head of
//! a request. When it stops, it waits for a client that has sent half a request.

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

/// The longest head of a request. Each connection may keep this much memory for headers.
const HEAD_LEN_MAX: usize = 64 << 10;

/// How long a gateway that is asked to stop stays without a request, because one may be on its way.
const FAREWELL: Duration = Duration::from_millis(500);

/// The longest time for requests to be done, and for answers to leave, after the gateway was asked
/// to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(20);

/// The connections of a gateway. A drop of this value drops all of them.
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
    /// No connections yet. Work that counts in `handled` delays the end.
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

    /// Serves connections until the gateway is closing, at most as many at once as the limit says.
    /// Then goes on until every request has its answer, as far as the client reads the answer, and
    /// until all other work that counts as handled is done.
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
                // This comes first, so that many new clients do not delay the end.
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
                // The request counts from here on. A request that was read behind an answer is not
                // begun before that answer has left.
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

    /// Ends all connections when they have no request any more, without a wait for half a request.
    /// Then waits for the writes of clients that are gone. When the time is over, only requests
    /// that are not done make the end a failure. A client that does not read its answer does not.
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
