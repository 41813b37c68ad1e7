use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::Client;
use tokio::sync::watch;

use super::{
    fitness,
    key_layout::Layout,
    link::{Current, Link, dial},
    sentinel::Sentinels,
    service_url::Topology,
    single_flight::SingleFlight,
    turns::Turns,
};
use crate::error::translate;
use lock_core::Error;

/// The server to connect to. It is determined again for every connection.
pub(super) enum Peer {
    /// One server.
    Server(Client),
    /// A node of a cluster.
    Node(Client),
    /// The server that the sentinels name.
    Primary(Box<Sentinels>),
}

/// The only owner of the connection for commands to a server. It makes a new connection when the
/// present one breaks.
///
/// It never sends a command twice, because only the caller knows whether that is right. Pushes
/// arrive on a connection of their own (see [`Pushes`](crate::pushes::Pushes)), so an answer on
/// this connection always belongs to the command before it.
pub(super) struct Connection {
    dialer: Arc<Dialer>,
    /// The connection that is being made.
    connecting: SingleFlight<Result<Link, Error>>,
    /// The limit on requests that are sent in turn.
    turns: Arc<Turns>,
}

/// Makes connections, and keeps the present one.
struct Dialer {
    peer: Peer,
    layout: Layout,
    timeout: Duration,
    moves: Moves,
    current: Arc<Current>,
    /// The number of the next connection.
    next: AtomicU64,
}

/// Notifies that a shard may be on another server than before.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves(watch::Sender<()>);

impl Connection {
    /// A connection that is made when a caller first asks for a link. `turns` requests in turn may
    /// be under way at once.
    pub(super) fn new(
        peer: Peer,
        layout: Layout,
        timeout: Duration,
        moves: Moves,
        turns: usize,
    ) -> Self {
        Self {
            dialer: Arc::new(Dialer {
                peer,
                layout,
                timeout,
                moves,
                current: Arc::default(),
                next: AtomicU64::new(0),
            }),
            connecting: SingleFlight::default(),
            turns: Arc::new(Turns::new(turns)),
        }
    }

    /// Turns at this server.
    pub(super) fn turns(&self) -> Arc<Turns> {
        Arc::clone(&self.turns)
    }

    /// The present connection, or a new one. A new one is made once for all callers that wait for
    /// it, and if that fails, it fails for all of them. Then nothing of the operation was sent.
    pub(super) async fn link(&self) -> Result<Link, Error> {
        if let Some(link) = self.dialer.current.link() {
            return Ok(link);
        }
        let connecting = self.connecting.join(|| {
            let dialer = Arc::clone(&self.dialer);
            Box::pin(async move { dialer.link().await })
        });
        let made = connecting.await?;
        // If the future was not polled for a while, the connection may have been replaced by now.
        Ok(self.dialer.current.link().unwrap_or(made))
    }

    /// The client for the server, for a caller that makes a connection of its own.
    pub(super) async fn locate(&self) -> Result<Client, Error> {
        self.dialer.locate().await
    }

    /// The address of the server of the present connection.
    pub(super) fn address(&self) -> Option<String> {
        let link = self.dialer.current.link();
        link.map(|link| link.server().to_owned())
    }
}

impl Dialer {
    async fn link(&self) -> Result<Link, Error> {
        // The connection may have been made since the caller looked for it.
        if let Some(link) = self.current.link() {
            return Ok(link);
        }
        let link = self.connect().await?;
        *self.current.lock() = Some(link.clone());
        self.moves.notify();
        Ok(link)
    }

    async fn locate(&self) -> Result<Client, Error> {
        match &self.peer {
            Peer::Server(client) | Peer::Node(client) => Ok(client.clone()),
            Peer::Primary(sentinels) => sentinels.primary().await,
        }
    }

    async fn connect(&self) -> Result<Link, Error> {
        let client = self.locate().await?;
        let commands = dial(&client, self.timeout)
            .await
            .map_err(|error| translate(error).outcome_not_applied())?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let home = Arc::downgrade(&self.current);
        let server = client.get_connection_info().addr().to_string();
        let mut link = Link::new(number, server, commands, self.layout.shards, home);
        fitness::check(&mut link, self.peer.topology()).await?;
        self.layout.agree_here(&mut link).await?;
        Ok(link)
    }
}

impl Peer {
    const fn topology(&self) -> Topology {
        match self {
            Self::Server(_) => Topology::Standalone,
            Self::Node(_) => Topology::Cluster,
            Self::Primary(_) => Topology::Sentinel,
        }
    }
}

impl Moves {
    /// Changes whenever a shard may have moved.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }

    pub(super) fn notify(&self) {
        self.0.send_replace(());
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The peer is left out, because it may show a password.
        f.debug_struct("Connection")
            .field("layout", &self.dialer.layout)
            .finish_non_exhaustive()
    }
}
