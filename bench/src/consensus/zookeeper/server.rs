//! The server for one figure.

use std::{
    fs, io,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{figure::BoxError, pinning::Pinning};

/// Where Debian keeps the server.
const CLASSES: &str = "/usr/share/java/zookeeper.jar";

/// A ZooKeeper server on the core of the server; it forces nothing to disk. Killed when dropped.
pub(super) struct Server {
    pub(super) address: String,
    process: Child,
    _directory: TempDir,
}

impl Server {
    /// Starts an empty server; it serves when this returns.
    pub(super) async fn start(pinning: Pinning) -> Result<Self, BoxError> {
        if !fs::exists(CLASSES)? {
            return Err("zookeeper is not installed (Debian: apt install zookeeper)".into());
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        let configuration = directory.path().join("zoo.cfg");
        let settings = format!(
            "dataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             admin.enableServer=false\n4lw.commands.whitelist=srvr\n",
            directory.path().display(),
        );
        fs::write(&configuration, settings)?;
        pinning.pin_for_server()?;
        let process = Command::new("java")
            .args(["-Xmx256m", "-XX:+UseSerialGC", "-Dzookeeper.forceSync=no"])
            .args(["-Dzookeeper.jmx.log4j.disable=true", "-cp", CLASSES])
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(&configuration)
            .current_dir(&directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        pinning.pin_for_clients()?;
        let mut server = Self {
            address: format!("127.0.0.1:{port}"),
            process: process?,
            _directory: directory,
        };
        server.until_it_serves().await?;
        Ok(server)
    }

    pub(super) fn url(&self) -> String {
        format!("zookeeper://{}", self.address)
    }

    async fn until_it_serves(&mut self) -> Result<(), BoxError> {
        for _ in 0..300 {
            if self.serves().await.unwrap_or(false) {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                return Err(format!("zookeeper ended at once: {status}").into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("zookeeper does not serve after 30 s".into())
    }

    async fn serves(&self) -> io::Result<bool> {
        let mut connection = TcpStream::connect(&self.address).await?;
        connection.write_all(b"srvr").await?;
        let mut told = String::new();
        connection.read_to_string(&mut told).await?;
        Ok(told.contains("Mode: "))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This can only fail if the server has already ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
