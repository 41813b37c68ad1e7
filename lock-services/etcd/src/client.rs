use std::{
    fmt,
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream};
use http::uri::PathAndQuery;
use prost::Message;
use tonic::{
    Request, Status, Streaming,
    client::Grpc,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use tracing::debug;

use super::{
    failure::{Failure, Remedy, may_have_run, remedy},
    service_url::{Login, ServiceUrl},
    tls,
    wire::{AuthenticateRequest, AuthenticateResponse, method},
};
use lock_core::{
    Error,
    backend::{
        Clock,
        support::{Silence, connecting::invalid, lock},
    },
};

/// How long a node may take to accept a connection, at most.
const CONNECT: Duration = Duration::from_secs(1);
/// How long to wait after all nodes have failed.
const PAUSE: Duration = Duration::from_millis(50);
/// How often a quiet connection is probed. A server hangs up on who does it more often than every
/// 5 s.
const PROBE: Duration = Duration::from_secs(10);

/// The nodes of a cluster. One of them is asked for everything, until it fails.
pub(super) struct Client {
    nodes: Vec<Channel>,
    /// The node that is asked, modulo their number.
    current: AtomicUsize,
    login: Option<Login>,
    /// What the login has brought.
    token: Mutex<Option<MetadataValue<Ascii>>>,
    /// How long a node may take to answer before another one is asked.
    response_timeout: Duration,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) silence: Silence,
}

impl Client {
    /// Connects to nobody yet.
    pub(super) fn new(
        url: ServiceUrl,
        response_timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let scheme = tls::scheme(url.tls.as_ref());
        let node = |node: &String| {
            let endpoint = Endpoint::from_shared(format!("{scheme}://{node}"))
                .map_err(|error| invalid("a host is invalid").caused_by(error))?
                .connect_timeout(std::cmp::min(CONNECT, response_timeout))
                .tcp_nodelay(true)
                .http2_keep_alive_interval(PROBE)
                .keep_alive_timeout(response_timeout);
            let endpoint = match &url.tls {
                Some(files) => tls::secure(endpoint, files)?,
                None => endpoint,
            };
            Ok(endpoint.connect_lazy())
        };
        Ok(Self {
            nodes: url.nodes.iter().map(node).collect::<Result<_, Error>>()?,
            current: AtomicUsize::new(0),
            login: url.login,
            token: Mutex::default(),
            response_timeout,
            silence: Silence::new(Arc::clone(&clock)),
            clock,
        })
    }

    /// Calls until an answer comes that is final, or for that long.
    ///
    /// The request may be carried out several times, and even after this has returned: each of ours
    /// compares before it changes anything.
    pub(super) async fn call<A, B>(
        &self,
        method: &'static str,
        request: &A,
        patience: Duration,
    ) -> Result<B, Failure>
    where
        A: Message + Clone + 'static,
        B: Message + Default + 'static,
    {
        let answer = self.call_told(method, request, patience).await?;
        Ok(answer.0)
    }

    /// The same. Also tells whether the request was sent more than once.
    pub(super) async fn call_told<A, B>(
        &self,
        method: &'static str,
        request: &A,
        patience: Duration,
    ) -> Result<(B, bool), Failure>
    where
        A: Message + Clone + 'static,
        B: Message + Default + 'static,
    {
        self.ask(patience, || self.unary(method, request.clone()))
            .await
    }

    /// The same for a stream of requests, of which the answers are those to all of them.
    pub(super) async fn call_each<A, B>(
        &self,
        method: &'static str,
        requests: &[A],
        patience: Duration,
    ) -> Result<Vec<B>, Failure>
    where
        A: Message + Clone + 'static,
        B: Message + Default + 'static,
    {
        let ask = || async {
            let number = requests.len();
            let requests = stream::iter(requests.to_vec()).chain(stream::pending());
            let answers: Streaming<B> = self.stream(method, requests).await?;
            let answers: Vec<Result<B, Status>> = answers.take(number).collect().await;
            if answers.len() < number {
                return Err(Status::unavailable("the stream of answers has ended"));
            }
            answers.into_iter().collect()
        };
        Ok(self.ask(patience, ask).await?.0)
    }

    /// Opens a stream that goes on: nothing is tried again.
    pub(super) async fn open<A, B>(
        &self,
        method: &'static str,
        request: A,
    ) -> Result<Streaming<B>, Status>
    where
        A: Message + 'static,
        B: Message + Default + 'static,
    {
        let requests = stream::iter([request]).chain(stream::pending());
        let opened = self.stream(method, requests);
        let opened = tokio::time::timeout(self.response_timeout, opened).await;
        opened.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")))
    }

    async fn ask<T, F>(
        &self,
        patience: Duration,
        once: impl Fn() -> F,
    ) -> Result<(T, bool), Failure>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let asking = self.silence.ask();
        let until = self.clock.now() + patience;
        let (mut sent, mut failed) = (false, 0);
        loop {
            let current = self.current.load(Ordering::Relaxed);
            let answer = match self.logged_in(once(), failed).await {
                Ok(answer) => {
                    asking.answered();
                    return Ok((answer, sent));
                }
                Err(status) => status,
            };
            debug!(status = %answer, "etcd");
            sent |= may_have_run(&answer);
            match remedy(&answer) {
                Remedy::None => {
                    asking.answered();
                    return Err(Failure::new(answer, sent));
                }
                Remedy::LogIn => *self.token() = None,
                Remedy::Again => self.leave(current),
            }
            failed += 1;
            let pause = if failed % self.nodes.len() == 0 {
                PAUSE
            } else {
                Duration::ZERO
            };
            if self.clock.now() + pause >= until {
                return Err(Failure::new(answer, sent));
            }
            self.clock.sleep_until(self.clock.now() + pause).await;
        }
    }

    /// Logs in, if that is needed, and calls.
    async fn logged_in<T>(
        &self,
        call: impl Future<Output = Result<T, Status>>,
        failed: usize,
    ) -> Result<T, Status> {
        let login = self.login.as_ref().filter(|_| self.token().is_none());
        let all = async {
            if let Some(login) = login {
                debug!(failed, "etcd: logging in");
                self.log_in(login).await?;
            }
            call.await
        };
        let answer = tokio::time::timeout(self.response_timeout, all).await;
        answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")))
    }

    async fn log_in(&self, login: &Login) -> Result<(), Status> {
        let request = AuthenticateRequest {
            name: login.name.clone(),
            password: login.password.clone(),
        };
        let answer: AuthenticateResponse = self.unary(method::AUTHENTICATE, request).await?;
        let token = answer.token.parse();
        let token = token.map_err(|_| Status::unknown("the token of the login is no text"))?;
        *self.token() = Some(token);
        Ok(())
    }

    async fn unary<A, B>(&self, method: &'static str, request: A) -> Result<B, Status>
    where
        A: Message + 'static,
        B: Message + Default + 'static,
    {
        let mut grpc = self.ready().await?;
        let codec = ProstCodec::<A, B>::default();
        let path = PathAndQuery::from_static(method);
        let answer = grpc.unary(self.labelled(request), path, codec).await?;
        Ok(answer.into_inner())
    }

    async fn stream<A, B>(
        &self,
        method: &'static str,
        requests: impl Stream<Item = A> + Send + 'static,
    ) -> Result<Streaming<B>, Status>
    where
        A: Message + 'static,
        B: Message + Default + 'static,
    {
        let mut grpc = self.ready().await?;
        let codec = ProstCodec::<A, B>::default();
        let path = PathAndQuery::from_static(method);
        let answers = grpc.streaming(self.labelled(requests), path, codec).await?;
        Ok(answers.into_inner())
    }

    async fn ready(&self) -> Result<Grpc<Channel>, Status> {
        let current = self.current.load(Ordering::Relaxed) % self.nodes.len();
        let mut grpc = Grpc::new(self.nodes[current].clone());
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::from_error(Box::new(error)))?;
        Ok(grpc)
    }

    /// A node without a leader refuses at once, and ends its streams; and this is who we are.
    fn labelled<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = &*self.token() {
            metadata.insert("token", token.clone());
        }
        request
    }

    /// Asks the next node from now on, unless somebody else has moved on already.
    fn leave(&self, node: usize) {
        let next = node.wrapping_add(1);
        let moved = self
            .current
            .compare_exchange(node, next, Ordering::Relaxed, Ordering::Relaxed);
        if moved.is_ok() {
            debug!(node, "etcd: asking the next node from now on");
        }
    }

    fn token(&self) -> std::sync::MutexGuard<'_, Option<MetadataValue<Ascii>>> {
        lock(&self.token)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("nodes", &self.nodes.len())
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}
