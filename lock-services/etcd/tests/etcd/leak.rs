use std::{
    collections::HashSet,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
};

/// The length of the preface of a client of HTTP/2.
const PREFACE: usize = 24;
/// The length, the type, flags and the stream of a frame.
const HEADER: usize = 9;
/// The type of a frame that has a part of a message.
const DATA: u8 = 0;

/// A proxy in front of a node that loses some requests and passes all others. For the lost requests
/// the node seems to hang.
pub(crate) struct Leak {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    target: SocketAddr,
    is_lost: Mutex<Option<Predicate>>,
    lost: AtomicUsize,
}

/// Says by the text of a request whether it gets lost.
type Predicate = Box<dyn Fn(&str) -> bool + Send>;

impl Leak {
    pub(crate) async fn start(node: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: node.parse().unwrap(),
            is_lost: Mutex::default(),
            lost: AtomicUsize::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("etcd://{}", self.address)
    }

    /// Loses these requests from now on. They have to be short.
    pub(crate) fn lose(&self, is_lost: impl Fn(&str) -> bool + Send + 'static) {
        *self.shared.is_lost() = Some(Box::new(is_lost));
    }

    /// Loses no request from now on.
    pub(crate) fn let_go(&self) {
        *self.shared.is_lost() = None;
    }

    /// The number of requests that were lost.
    pub(crate) fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn is_lost(&self) -> MutexGuard<'_, Option<Predicate>> {
        self.is_lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loses(&self, part: &[u8]) -> bool {
        let text = String::from_utf8_lossy(part);
        self.is_lost()
            .as_ref()
            .is_some_and(|is_lost| is_lost(&text))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut tasks = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tasks.spawn(async move { carry(client, &shared).await.ok() });
    }
}

async fn carry(client: TcpStream, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect(shared.target).await?;
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    tokio::select! {
        ended = carry_requests(from_client, to_server, shared) => ended,
        ended = tokio::io::copy(&mut from_server, &mut to_client) => ended.map(drop),
    }
}

async fn carry_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
) -> io::Result<()> {
    let mut preface = [0; PREFACE];
    from.read_exact(&mut preface).await?;
    to.write_all(&preface).await?;
    let mut lost = HashSet::new();
    loop {
        let mut frame = vec![0; HEADER];
        from.read_exact(&mut frame).await?;
        let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
        let (kind, stream) = (frame[3], frame[5..HEADER].to_vec());
        frame.resize(HEADER + usize::try_from(length).unwrap(), 0);
        from.read_exact(&mut frame[HEADER..]).await?;
        if kind == DATA && shared.loses(&frame[HEADER..]) {
            shared.lost.fetch_add(1, Ordering::Relaxed);
            lost.insert(stream.clone());
        }
        // The later parts of a lost request are lost, too, and the server waits for them.
        if kind != DATA || !lost.contains(&stream) {
            to.write_all(&frame).await?;
        }
    }
}
