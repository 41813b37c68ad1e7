//! A proxy that drops single script requests, so that a node misses them, or answers them with an
//! error although they were run, or delays them. The connection lives on.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::frames::Frames;

/// A proxy in front of one Redis server. It ends, with its connections, when it is dropped.
#[derive(Debug)]
pub struct LossyProxy {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

/// The shares of all requests that suffer each fault, from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Losses {
    /// Requests that never arrive.
    pub requests: f64,
    /// Requests that are run, but whose answers are lost.
    pub answers: f64,
    /// Requests that arrive up to 8 ms late. Requests that were sent after them arrive even later.
    pub late: f64,
}

/// The greatest delay of a request.
const LATE_MAX: Duration = Duration::from_millis(8);

/// The answer to a lost request: it does not say whether the request was run.
const LOST: &[u8] = b"-BUSY lost\r\n";

impl LossyProxy {
    /// Starts a proxy in front of the server at `address`, such as `127.0.0.1:6379`.
    ///
    /// # Panics
    /// If it is not an address, or no port is free.
    pub async fn start(address: &str, losses: Losses) -> Self {
        let target: SocketAddr = address.parse().expect("an address and a port");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(async move { carry(client, target, losses).await.is_ok() });
            }
        });
        Self {
            address,
            _tasks: tasks,
        }
    }

    /// Host and port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Carries requests and their answers, one after the other.
async fn carry(mut client: TcpStream, target: SocketAddr, losses: Losses) -> io::Result<()> {
    let mut server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut requests, mut answers) = (Frames::default(), Frames::default());
    loop {
        let request = next(&mut requests, &mut client).await?;
        let is_script = request.windows(7).any(|word| word == b"EVALSHA");
        let dice: f64 = if is_script { rand::random() } else { 1.0 };
        if dice < losses.requests {
            client.write_all(LOST).await?;
            continue;
        }
        if is_script && rand::random_bool(losses.late) {
            tokio::time::sleep(LATE_MAX.mul_f64(rand::random())).await;
        }
        server.write_all(&request).await?;
        let answer = next(&mut answers, &mut server).await?;
        if dice < losses.requests + losses.answers {
            client.write_all(LOST).await?;
        } else {
            client.write_all(&answer).await?;
        }
    }
}

async fn next(frames: &mut Frames, from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(message) = frames.next() {
            return Ok(message);
        }
        match from.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => frames.extend(&buffer[..read]),
        }
    }
}
