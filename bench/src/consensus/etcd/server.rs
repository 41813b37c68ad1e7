use std::{
    io,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::{figure::BoxError, pinning::Pinning};

/// An `etcd` on the core of the server. Killed when dropped.
pub(super) struct Server {
    address: String,
    process: Child,
    _directory: TempDir,
}

impl Server {
    /// Starts one node without data; it accepts connections when this returns.
    pub(super) async fn start(pinning: Pinning) -> Result<Self, BoxError> {
        let port = || Ok::<_, io::Error>(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let (client, peer) = (
            format!("127.0.0.1:{}", port()?),
            format!("127.0.0.1:{}", port()?),
        );
        let directory = tempfile::tempdir()?;
        pinning.pin_for_server()?;
        let process = Command::new("etcd")
            .args(["--data-dir", "data", "--name", "n0", "--log-level", "error"])
            .args(["--listen-client-urls", &format!("http://{client}")])
            .args(["--advertise-client-urls", &format!("http://{client}")])
            .args(["--listen-peer-urls", &format!("http://{peer}")])
            .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
            .args(["--initial-cluster", &format!("n0=http://{peer}")])
            .current_dir(&directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        pinning.pin_for_clients()?;
        let process = process.map_err(|error| {
            format!("cannot start etcd (Debian: apt install etcd-server): {error}")
        })?;
        let mut server = Self {
            address: client,
            process,
            _directory: directory,
        };
        server.until_it_listens().await?;
        Ok(server)
    }

    pub(super) fn url(&self) -> String {
        format!("etcd://{}", self.address)
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    async fn until_it_listens(&mut self) -> Result<(), BoxError> {
        for _ in 0..1000 {
            if TcpStream::connect(&self.address).await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                return Err(format!("etcd ended at once: {status}").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err("etcd does not listen after 10 s".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This can only fail if the server has already ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
