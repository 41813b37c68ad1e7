//! A network in which messages are delayed.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinSet,
    time::Instant,
};

use crate::figure::BoxError;

/// A proxy that delays requests, but not answers: round trips become longer by the delay.
pub(super) struct Delay {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Delay {
    pub(super) async fn before(server: SocketAddr, delay: Duration) -> Result<Self, BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(async move {
                    // The bench notices a broken connection by itself.
                    carry(client, server, delay).await.ok();
                });
            }
        });
        Ok(Self {
            address,
            _tasks: tasks,
        })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn carry(client: TcpStream, server: SocketAddr, delay: Duration) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    let (late, due) = mpsc::unbounded_channel();
    tokio::try_join!(
        receive(from_client, delay, late),
        deliver(due, to_server),
        async {
            tokio::io::copy(&mut from_server, &mut to_client)
                .await
                .map(drop)
        },
    )?;
    Ok(())
}

async fn receive(
    mut from: OwnedReadHalf,
    delay: Duration,
    late: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        let message = (Instant::now() + delay, buffer[..read].to_vec());
        if read == 0 || late.send(message).is_err() {
            return Ok(());
        }
    }
}

async fn deliver(
    mut due: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    mut to: OwnedWriteHalf,
) -> std::io::Result<()> {
    while let Some((at, message)) = due.recv().await {
        tokio::time::sleep_until(at).await;
        to.write_all(&message).await?;
    }
    Ok(())
}
