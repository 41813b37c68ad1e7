//! The server for one figure.

use std::{
    io,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, PushInfo, RedisResult,
    aio::{MultiplexedConnection, SendError},
    io::tcp::TcpSettings,
};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::{figure::BoxError, pinning::Pinning};

/// A `redis-server` on the core of the server, without persistence. Killed when dropped.
pub(crate) struct Server {
    url: String,
    process: Child,
    _directory: TempDir,
}

impl Server {
    /// Starts an empty server; it accepts connections when this returns.
    pub(crate) async fn start(pinning: Pinning) -> Result<Self, BoxError> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        pinning.pin_for_server()?;
        let process = Command::new("redis-server")
            .args(["--save", "", "--bind", "127.0.0.1", "--port"])
            .arg(port.to_string())
            .current_dir(&directory)
            .stdout(Stdio::null())
            .spawn();
        pinning.pin_for_clients()?;
        let mut server = Self {
            url: format!("redis://127.0.0.1:{port}"),
            process: process.map_err(cannot_start)?,
            _directory: directory,
        };
        server.until_it_listens(port).await?;
        Ok(server)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A connection without any option that costs time.
    pub(crate) async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        connect(&self.url, None::<fn(PushInfo) -> Result<(), SendError>>).await
    }

    async fn until_it_listens(&mut self, port: u16) -> Result<(), BoxError> {
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                return Err(format!("redis-server ended at once: {status}").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err("redis-server does not listen after 5 s".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This can only fail if the server has already ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Connects without Nagle's algorithm and without a timer per answer. If there is a receiver of
/// pushes, the connection uses RESP3.
pub(super) async fn connect(
    url: &str,
    pushes: Option<impl Fn(PushInfo) -> Result<(), SendError> + Send + Sync + 'static>,
) -> RedisResult<MultiplexedConnection> {
    let tcp = TcpSettings::default().set_nodelay(true);
    let mut info = url.into_connection_info()?.set_tcp_settings(tcp);
    let mut config = AsyncConnectionConfig::new().set_response_timeout(None);
    if let Some(pushes) = pushes {
        let settings = info.redis_settings().clone();
        info = info.set_redis_settings(settings.set_protocol(ProtocolVersion::RESP3));
        config = config.set_push_sender(pushes);
    }
    Client::open(info)?
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

fn cannot_start(error: io::Error) -> BoxError {
    if error.kind() == io::ErrorKind::NotFound {
        return "redis-server is not installed: install it (Debian: apt install redis-server), or \
                put it on the PATH"
            .into();
    }
    format!("cannot start redis-server: {error}").into()
}
