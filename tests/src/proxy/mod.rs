//! A TCP proxy that lets a test come between a client and its server.
//!
//! A [`Fault`] is inflicted on connections: on all that there are, on one, on those to come. Or it
//! lies in wait as a [`Trap`] for a certain request, reply or push, and hits the connection that it
//! is on at exactly that message:
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
//! Faults are those that a network has. It loses no message from the middle of a connection: once
//! a request or a reply was dropped, so is every later one in that direction, for good. A push may
//! be lost alone, because a server publishes to whoever listens at that moment.
//!
//! Messages are told apart by the grammar of RESP, 2 and 3. Those of other protocols pass in pieces
//! as they come. A trap for a request makes sense there too, if its text is sent in one piece and
//! nothing is sent ahead of its answer; a trap for a reply or a push does not.

mod connection;
mod fault;
mod frames;
mod lossy;
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
    target: SocketAddr,
    /// All that were ever made, so that their numbers stay.
    connections: Mutex<Vec<Arc<Connection>>>,
    /// What those that come later begin with.
    new: Mutex<Flow>,
    traps: Arc<Traps>,
}

impl Proxy {
    /// Starts a proxy in front of the server that a URL names by host and port.
    ///
    /// # Panics
    /// If the URL has no host and port, or no port is free.
    pub async fn start(url: &str) -> Self {
        let (_, target) = url.rsplit_once('/').expect("a URL with //");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let shared = Arc::new(Shared {
            target: target.parse().expect("an address and a port"),
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

    /// The URL of the proxy, for `redis://` and the like.
    #[must_use]
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    /// Hits every connection that there is.
    pub fn inflict(&self, fault: Fault) {
        for connection in lock(&self.shared.connections).iter() {
            connection.suffer(fault);
        }
    }

    /// Hits one connection; they are numbered from 0 in the order in which they were made.
    ///
    /// # Panics
    /// If it was never made.
    pub fn inflict_on(&self, connection: usize, fault: Fault) {
        lock(&self.shared.connections)[connection].suffer(fault);
    }

    /// Hits every connection that is made from here on, until [`let_go`](Self::let_go).
    pub fn inflict_on_new(&self, fault: Fault) {
        lock(&self.shared.new).suffer(fault);
    }

    /// Delivers what was held, and lets everything pass, at once.
    ///
    /// A connection that is broken, or that has lost something, stays so.
    pub fn let_go(&self) {
        *lock(&self.shared.new) = Flow::default();
        for connection in lock(&self.shared.connections).iter() {
            connection.heal();
        }
    }

    /// Hits the connection on which the next request that contains `text` comes in, before that
    /// request is sent on.
    #[must_use = "only a trap that has sprung shows that there was a fault"]
    pub fn at_request(&self, text: &str, fault: Fault) -> Trap {
        self.shared.traps.set(Place::Request, text, fault)
    }

    /// Lets the next request that contains `text` pass, and hits its connection when the reply to
    /// it comes in, before that reply is sent on.
    #[must_use = "only a trap that has sprung shows that there was a fault"]
    pub fn at_reply_to(&self, text: &str, fault: Fault) -> Trap {
        self.shared.traps.set(Place::ReplyTo, text, fault)
    }

    /// Hits the connection on which the next push that contains `text` comes in, before that push
    /// is sent on.
    #[must_use = "only a trap that has sprung shows that there was a fault"]
    pub fn at_push(&self, text: &str, fault: Fault) -> Trap {
        self.shared.traps.set(Place::Push, text, fault)
    }

    /// How many connections were ever made.
    #[must_use]
    pub fn connections(&self) -> usize {
        lock(&self.shared.connections).len()
    }

    /// Whether a connection is over at both ends, and what was under way has arrived or is lost.
    ///
    /// # Panics
    /// If it was never made.
    #[must_use]
    pub fn has_ended(&self, connection: usize) -> bool {
        lock(&self.shared.connections)[connection].has_ended()
    }

    /// How many requests, replies and pushes were dropped, on all connections.
    #[must_use]
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
        // A client that is refused by the server is refused by the proxy: dropped at once.
        let Ok(server) = TcpStream::connect(shared.target).await else {
            continue;
        };
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
