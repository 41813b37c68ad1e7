use std::{
    cmp, fmt,
    future::Future,
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt, future::try_join_all, stream};
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
    node::Node,
    service_url::{Login, ServiceUrl},
    tls,
    wire::{AuthenticateRequest, AuthenticateResponse, method},
};
use lock_core::{
    Error,
    backend::{
        Runtime,
        support::{connecting::invalid, lock},
    },
};

/// The longest time that a node may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(1);
/// The interval at which a quiet connection is probed. A server closes connections that are probed
/// more often than every 5 s.
const PROBE: Duration = Duration::from_secs(10);
/// Requests that are answered one after the other may take this part of the response timeout. The
/// rest of the timeout is for a node that becomes slower, and for the batches that come after them.
const SHARE: u32 = 20;

/// The nodes of a cluster. All requests go to one node, until it fails.
pub(super) struct Client {
    nodes: Vec<Node>,
    /// The number of the node that is asked, modulo the number of nodes.
    current: AtomicUsize,
    login: Option<Login>,
    /// The token of the login, which is sent with each request.
    token: Mutex<Option<MetadataValue<Ascii>>>,
    /// The longest time that a node may take to answer. After it another node is asked.
    response_timeout: Duration,
    pub(super) runtime: Arc<dyn Runtime>,
}

impl Client {
    /// A client that has not connected yet.
    pub(super) fn new(
        url: ServiceUrl,
        response_timeout: Duration,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let scheme = tls::scheme(url.tls.as_ref());
        let node = |node: &String| {
            let endpoint = Endpoint::from_shared(format!("{scheme}://{node}"))
                .map_err(|error| invalid("a host is invalid").caused_by(error))?
                .connect_timeout(cmp::min(CONNECT, response_timeout))
                .tcp_nodelay(true)
                .http2_keep_alive_interval(PROBE)
                .keep_alive_timeout(response_timeout);
            let endpoint = match &url.tls {
                Some(files) => tls::secure(endpoint, files)?,
                None => endpoint,
            };
            Ok(Node::new(endpoint))
        };
        Ok(Self {
            nodes: url.nodes.iter().map(node).collect::<Result<_, Error>>()?,
            current: AtomicUsize::new(0),
            login: url.login,
            token: Mutex::default(),
            response_timeout,
            runtime,
        })
    }

    /// The longest time that one call takes.
    pub(super) fn longest_call(&self) -> Duration {
        let nodes = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.response_timeout.saturating_mul(nodes)
    }

    /// Asks one node after the other, each of them once, until one answers.
    ///
    /// Several nodes may carry out the request, even after this has returned. That is safe, because
    /// each request of this client compares before it changes anything.
    pub(super) async fn call<A, B>(&self, method: &'static str, request: &A) -> Result<B, Failure>
    where
        A: Message + Clone + 'static,
        B: Message + Default + 'static,
    {
        let answer = self.call_counting_copies(method, request).await?;
        Ok(answer.0)
    }

    /// As [`call`](Self::call). Also returns whether another node may have carried out the request.
    pub(super) async fn call_counting_copies<A, B>(
        &self,
        method: &'static str,
        request: &A,
    ) -> Result<(B, bool), Failure>
    where
        A: Message + Clone + 'static,
        B: Message + Default + 'static,
    {
        self.ask(|| self.unary(method, request.clone())).await
    }

    /// As [`call`](Self::call), for several requests, which are sent in streams. A stream carries
    /// `in_a_row` requests, and a node may answer them one after the other. The result has the
    /// answers to all requests.
    pub(super) async fn call_each<A, B>(
        &self,
        method: &'static str,
        requests: &[A],
        in_a_row: usize,
    ) -> Result<Vec<B>, Failure>
    where
        A: Message + Clone + 'static,
        B: Message + Clone + Default + 'static,
    {
        let ask = || async {
            let rows = requests.chunks(in_a_row);
            let rows = rows.map(|row| self.one_after_another(method, row));
            Ok(try_join_all(rows).await?.concat())
        };
        Ok(self.ask(ask).await?.0)
    }

    /// The number of requests that may be answered one after the other if each takes this time. It
    /// is at least one.
    pub(super) fn in_a_row(&self, each: Duration) -> usize {
        let number = (self.response_timeout / SHARE).as_nanos() / cmp::max(each.as_nanos(), 1);
        cmp::max(usize::try_from(number).unwrap_or(usize::MAX), 1)
    }

    async fn one_after_another<A, B>(
        &self,
        method: &'static str,
        requests: &[A],
    ) -> Result<Vec<B>, Status>
    where
        A: Message + Clone + 'static,
        B: Message + Default + 'static,
    {
        let number = requests.len();
        let requests = stream::iter(requests.to_vec()).chain(stream::pending());
        let answers: Streaming<B> = self.stream(method, requests).await?;
        let answers: Vec<Result<B, Status>> = answers.take(number).collect().await;
        if answers.len() < number {
            return Err(Status::unavailable("the stream of answers has ended"));
        }
        answers.into_iter().collect()
    }

    /// Opens a stream that goes on, at the present node.
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
        self.in_time(opened).await
    }

    async fn ask<T, F>(&self, once: impl Fn() -> F) -> Result<(T, bool), Failure>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let (mut sent, mut has_logged_in, mut nodes) = (false, false, self.nodes.len());
        loop {
            let current = self.current.load(Ordering::Relaxed);
            let status = match self.logged_in(once()).await {
                Ok(answer) => return Ok((answer, sent)),
                Err(status) => status,
            };
            debug!(%status, "etcd");
            sent |= may_have_run(&status);
            let is_last = match remedy(&status) {
                Remedy::None => true,
                Remedy::LogIn => {
                    *self.token() = None;
                    mem::replace(&mut has_logged_in, true)
                }
                Remedy::Again => {
                    self.leave(current);
                    nodes -= 1;
                    nodes == 0
                }
            };
            if is_last {
                return Err(Failure::new(status, sent));
            }
        }
    }

    /// Logs in, if that is needed, and calls.
    async fn logged_in<T>(
        &self,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let login = self.login.as_ref().filter(|_| self.token().is_none());
        let all = async {
            if let Some(login) = login {
                debug!("etcd: logging in");
                self.log_in(login).await?;
            }
            call.await
        };
        self.in_time(all).await
    }

    /// A call to the present node. If it has no answer in time, the next call gets a new
    /// connection.
    async fn in_time<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let node = self.node();
        let connection = node.connection();
        let answer = self.runtime.timeout(self.response_timeout, call).await;
        answer.unwrap_or_else(|| {
            node.give_up(connection);
            Err(Status::deadline_exceeded("no answer in time"))
        })
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
        let mut grpc = Grpc::new(self.node().channel());
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::from_error(Box::new(error)))?;
        Ok(grpc)
    }

    /// The node that is asked.
    fn node(&self) -> &Node {
        &self.nodes[self.current.load(Ordering::Relaxed) % self.nodes.len()]
    }

    /// The request with two labels: the first makes a node without a leader refuse at once, and end
    /// its streams; the second is the token of the login.
    fn labelled<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = &*self.token() {
            metadata.insert("token", token.clone());
        }
        request
    }

    /// Asks the next node from now on, unless another request has moved on already.
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

#[cfg(test)]
mod tests {
    use lock_core::backend::{ConnectOptions, TokioRuntime};

    use super::*;

    /// Catches: a stream for each request to a node that is near, or one stream for all requests to
    /// a node that is far.
    #[tokio::test]
    async fn as_many_requests_follow_each_other_as_fit_into_a_part_of_the_response_timeout() {
        let (url, settings) = ServiceUrl::read(&ConnectOptions::from("etcd://h")).unwrap();
        let client = Client::new(url, settings.response_timeout, Arc::new(TokioRuntime)).unwrap();
        let in_a_row = |millis| client.in_a_row(Duration::from_millis(millis));
        assert_eq!([2, 20, 40, 100, 5000].map(in_a_row), [50, 5, 2, 1, 1]);
        assert!(in_a_row(0) > 1_000_000);
    }
}
