//! The Redis lock service against the floor: as many round trips of scripts that do nothing.

use std::{error::Error, process::Stdio, time::Duration};

use lock_core::LockManager;
use redis::{Client, Script, aio::MultiplexedConnection};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use crate::{
    paired::{Figure, Samples, figure},
    pinning::Pinning,
};

const CYCLES_PER_TURN: usize = 200;

/// Measures everything, in both pinnings.
pub(crate) fn run(rounds: usize) -> Result<Vec<Figure>, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut figures = Vec::new();
    for pinning in Pinning::BOTH {
        pinning.pin_client()?;
        figures.push(runtime.block_on(cycle_vs_floor(pinning, rounds))?);
    }
    Ok(figures)
}

/// Acquire and release of a free resource, against two `EVALSHA` of `return 1` on the same client
/// library.
async fn cycle_vs_floor(pinning: Pinning, rounds: usize) -> Result<Figure, Box<dyn Error>> {
    let server = Server::start(pinning).await?;
    let locks = LockManager::connect(&server.url).await?;
    let mut floor = server.connect().await?;
    let nothing = Script::new("return 1");
    let (mut ours, mut other) = (Samples::default(), Samples::default());
    for round in 0..rounds {
        for turn in 0..2 {
            for _ in 0..CYCLES_PER_TURN {
                if (round + turn) % 2 == 0 {
                    ours.time(async { locks.acquire("r").await?.release().await })
                        .await?;
                } else {
                    other.time(twice(&nothing, &mut floor)).await?;
                }
            }
        }
    }
    Ok(figure("cycle_vs_floor", pinning.name(), ours, other))
}

async fn twice(script: &Script, floor: &mut MultiplexedConnection) -> redis::RedisResult<()> {
    for _ in 0..2 {
        let _: i64 = script.key("k").arg(1).arg(2).invoke_async(floor).await?;
    }
    Ok(())
}

struct Server {
    url: String,
    /// Killed when it is dropped.
    _process: Child,
    _directory: TempDir,
}

impl Server {
    async fn start(pinning: Pinning) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        let process = Command::new("taskset")
            .args([
                "-c",
                pinning.server_core(),
                "redis-server",
                "--save",
                "",
                "--port",
            ])
            .arg(port.to_string())
            .current_dir(&directory)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start taskset and redis-server: {error}"))?;
        let mut tries = 0;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tries += 1;
            if tries > 500 {
                return Err("redis-server does not listen after 5 s".into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let url = format!("redis://127.0.0.1:{port}");
        Ok(Self {
            url,
            _process: process,
            _directory: directory,
        })
    }

    async fn connect(&self) -> redis::RedisResult<MultiplexedConnection> {
        Client::open(self.url.as_str())?
            .get_multiplexed_async_connection()
            .await
    }
}
