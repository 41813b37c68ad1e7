//! Database servers for one figure, with their default durability.

mod account;
mod mariadb;
mod postgres;

use std::{
    io,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::net::TcpStream;

use self::account::Account;
use crate::{figure::BoxError, pinning::Pinning};

/// A server on the core of the server, which ends when dropped.
pub(super) struct Server {
    url: String,
    process: Child,
    _directory: TempDir,
}

impl Server {
    /// The URL of a database in it, by a user with all rights.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Starts the server and waits until it listens.
    async fn run(
        mut command: Command,
        port: u16,
        url: String,
        directory: TempDir,
        pinning: Pinning,
    ) -> Result<Self, BoxError> {
        pinning.pin_for_server()?;
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        pinning.pin_for_clients()?;
        let mut server = Self {
            url,
            process: process.map_err(|error| not_there(&command, &error))?,
            _directory: directory,
        };
        for _ in 0..3000 {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.process.try_wait()? {
                return Err(format!("the server ended at once: {status}").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err("the server does not listen after 30 s".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Not SIGKILL, after which Postgres would leave shared memory behind; this is just as
        // immediate.
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        let ended = pid.map(|pid| kill_process(pid, Signal::QUIT));
        if !matches!(ended, Some(Ok(()))) {
            self.process.kill().ok();
        }
        self.process.wait().ok();
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Runs a program and waits for its end.
fn install(command: &mut Command) -> Result<(), BoxError> {
    let output = command
        .output()
        .map_err(|error| not_there(command, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let why = [output.stdout, output.stderr].concat();
    Err(format!(
        "{command:?} failed: {}",
        String::from_utf8_lossy(&why).trim()
    )
    .into())
}

fn not_there(command: &Command, error: &io::Error) -> BoxError {
    let program = command.get_program().display();
    format!("cannot run {program}: {error}; scripts/test setup installs what is missing").into()
}
