//! A TCP proxy that lets a test come between a client and its server.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// What becomes of the bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Pass,
    /// Requests wait here, even if their client goes away. Answers pass.
    HoldRequests,
    /// Nothing passes in either direction, and nobody is told.
    BlackHole,
}

/// A proxy in front of one server. It ends when it is dropped.
///
/// Faults hit the connections that there are; those that come later pass.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    connections: Connections,
    _tasks: JoinSet<()>,
}

type Connections = Arc<Mutex<Vec<watch::Sender<Flow>>>>;

impl Proxy {
    /// Starts a proxy in front of the server that a URL names by host and port.
    ///
    /// # Panics
    /// If the URL has no host and port, or no port is free.
    pub async fn start(url: &str) -> Self {
        let (_, target) = url.rsplit_once('/').expect("a URL with //");
        let target: SocketAddr = target.parse().expect("an address and a port");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let connections = Connections::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, target, Arc::clone(&connections)));
        Self {
            address,
            connections,
            _tasks: tasks,
        }
    }

    /// The URL of the proxy, for `redis://` and the like.
    #[must_use]
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    /// Keeps what clients send from here on, until [`let_go`](Self::let_go).
    pub fn hold_requests(&self) {
        self.set(Flow::HoldRequests);
    }

    /// Lets nothing pass any more, as if the other host had vanished.
    pub fn black_hole(&self) {
        self.set(Flow::BlackHole);
    }

    /// Delivers what was held, and lets everything pass.
    pub fn let_go(&self) {
        self.set(Flow::Pass);
    }

    /// How many connections were ever made.
    #[must_use]
    pub fn connections(&self) -> usize {
        lock(&self.connections).len()
    }

    fn set(&self, flow: Flow) {
        for connection in lock(&self.connections).iter() {
            connection.send_replace(flow);
        }
    }
}

fn lock(connections: &Connections) -> std::sync::MutexGuard<'_, Vec<watch::Sender<Flow>>> {
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, target: SocketAddr, connections: Connections) {
    let mut tasks = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(target).await else {
            continue;
        };
        let (sender, flow) = watch::channel(Flow::Pass);
        lock(&connections).push(sender);
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let requests = |flow| flow == Flow::Pass;
        let answers = |flow| flow != Flow::BlackHole;
        tasks.spawn(forward(from_client, to_server, flow.clone(), requests));
        tasks.spawn(forward(from_server, to_client, flow, answers));
    }
}

/// Forwards what may pass. What has been read is delivered even if its sender has gone away.
async fn forward(
    mut from: impl AsyncRead + Unpin + Send,
    mut to: impl AsyncWrite + Unpin + Send,
    mut flow: watch::Receiver<Flow>,
    may_pass: impl Fn(Flow) -> bool + Send + Sync,
) {
    let forwarding = async {
        let mut buffer = [0; 4096];
        loop {
            let read = from.read(&mut buffer).await?;
            // An error means that the proxy is gone, and then nothing passes any more.
            flow.wait_for(|flow| may_pass(*flow))
                .await
                .map_err(io::Error::other)?;
            if read == 0 {
                return to.shutdown().await;
            }
            to.write_all(&buffer[..read]).await?;
        }
    };
    let broken: io::Result<()> = forwarding.await;
    // Connections break; that is what the proxy is for.
    broken.ok();
}
