//! A TCP proxy by which a test can interfere between a client and its server.
//!
//! A [`Fault`] is inflicted on connections: on all existing ones, on a single one, or on future
//! ones. Or it waits as a [`Trap`] for a certain request, reply or push, and hits the connection of
//! exactly that message:
//!
//! ```no_run
//! # async fn f(locks: lock_core::LockManager) -> Result<(), lock_core::Error> {
//! # use e2e::proxy::{Fault, Proxy};
//! let proxy = Proxy::start("redis://127.0.0.1:6379").await;
//! // The server grants the lease, and its answer never arrives.
//! let lost = proxy.at_reply_to("lease:account", Fault::DropReplies);
//! locks.acquire("account").await?;
//! assert!(lost.has_sprung());
//! # Ok(()) }
//! ```
//!
//! The faults are those of a network. The proxy does not lose a message from the middle of a
//! connection: once a request or a reply was dropped, all later messages in that direction are
//! dropped, too, until the connection ends. A push may be lost by itself, because a server
//! publishes only to the clients that listen at that moment.
//!
//! Messages are separated by the grammar of RESP, 2 and 3. Messages of other protocols pass in the
//! pieces in which they arrive. A trap for a request works there, too, if its text is sent in one
//! piece and nothing is sent before its answer; a trap for a reply or a push does not.

mod connection;
mod fault;
mod frames;
mod lossy;
mod on_time;
mod trap;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use self::{
    connection::Connection,
    fault::Flow,
    trap::{Place, Traps},
};
pub use self::{
    fault::Fault,
    lossy::{Losses, LossyProxy},
    trap::Trap,
};

/// A proxy in front of one server. It ends, with its connections, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<SocketAddr>,
    /// All connections ever made, so that their numbers stay the same.
    connections: Mutex<Vec<Arc<Connection>>>,
    /// The initial state of later connections.
    new: Mutex<Flow>,
    traps: Arc<Traps>,
}

impl Proxy {
    /// Starts a proxy in front of the server whose host and port are in the URL.
    ///
    /// # Panics
    /// If the URL has no host and port, or no port is free.
    pub async fn start(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let shared = Arc::new(Shared {
            target: Mutex::new(target(url)),
            connections: Mutex::default(),
            new: Mutex::default(),
            traps: Arc::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _tasks: tasks,
        }
    }

    /// From here on new connections go to this server, as a name leads to another server after a
    /// failover. Existing connections stay where they are until they are cut.
    ///
    /// # Panics
    /// If the URL has no host and port.
    pub fn point_to(&self, url: &str) {
        *lock(&self.shared.target) = target(url);
    }

    /// The URL of the proxy, for schemes such as `redis`.
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    /// The port of the proxy, on the loopback address.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Hits every existing connection.
    pub fn inflict(&self, fault: Fault) {
        for connection in lock(&self.shared.connections).iter() {
            connection.suffer(fault);
        }
    }

    /// Hits one connection; they are numbered from 0 in the order in which they were made.
    ///
    /// # Panics
    /// If this connection was never made.
    pub fn inflict_on(&self, connection: usize, fault: Fault) {
        lock(&self.shared.connections)[connection].suffer(fault);
    }

    /// Hits every connection that is made from now on, until [`let_go`](Self::let_go).
    pub fn inflict_on_new(&self, fault: Fault) {
        lock(&self.shared.new).suffer(fault);
    }

    /// Delivers held messages at once, and lets everything pass from now on.
    ///
    /// A connection that is broken stays broken, and one that has lost a message passes nothing.
    pub fn let_go(&self) {
        *lock(&self.shared.new) = Flow::default();
        for connection in lock(&self.shared.connections).iter() {
            connection.heal();
        }
    }

    /// Hits the connection on which the next request that contains `text` arrives, before that
    /// request is forwarded.
    #[must_use = "only a trap that has sprung shows that there was a fault"]
    pub fn at_request(&self, text: &str, fault: Fault) -> Trap {
        self.shared.traps.set(Place::Request, text, fault)
    }

    /// Lets the next request that contains `text` pass, and hits its connection when the reply to
    /// it arrives, before that reply is forwarded.
    #[must_use = "only a trap that has sprung shows that there was a fault"]
    pub fn at_reply_to(&self, text: &str, fault: Fault) -> Trap {
        self.shared.traps.set(Place::ReplyTo, text, fault)
    }

    /// Hits the connection on which the next push that contains `text` arrives, before that push is
    /// forwarded.
    #[must_use = "only a trap that has sprung shows that there was a fault"]
    pub fn at_push(&self, text: &str, fault: Fault) -> Trap {
        self.shared.traps.set(Place::Push, text, fault)
    }

    /// How many connections were ever made.
    pub fn connections(&self) -> usize {
        lock(&self.shared.connections).len()
    }

    /// Whether a connection is over at both ends, and its messages have been delivered or lost.
    ///
    /// # Panics
    /// If it was never made.
    pub fn has_ended(&self, connection: usize) -> bool {
        lock(&self.shared.connections)[connection].has_ended()
    }

    /// How many requests, replies and pushes were dropped, on all connections.
    pub fn dropped(&self) -> usize {
        let connections = lock(&self.shared.connections);
        connections.iter().map(|each| each.dropped()).sum()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut tasks = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        // If the server refuses a client, the proxy refuses it, too: the connection is dropped at
        // once.
        let target = *lock(&shared.target);
        let Ok(server) = TcpStream::connect(target).await else {
            continue;
        };
        // Only a fault may delay a message. A connection that has ended needs no such option.
        for stream in [&client, &server] {
            stream.set_nodelay(true).ok();
        }
        let connection = {
            let mut connections = lock(&shared.connections);
            let (number, flow) = (connections.len(), *lock(&shared.new));
            let connection = Connection::new(number, flow, Arc::clone(&shared.traps));
            connections.push(Arc::clone(&connection));
            connection
        };
        tasks.spawn(async move { connection.carry(client, server).await });
    }
}

fn target(url: &str) -> SocketAddr {
    let (_, target) = url.rsplit_once('/').expect("a URL with //");
    target.parse().expect("an address and a port")
}
