use std::{io, time::Duration};

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::OnceCell,
    time::timeout,
};

use super::owned::Owned;
use crate::{
    observer::until_within,
    port,
    warden::{Order, ServerKind},
};

/// How long an ensemble may be without a leader, and then wait for the end of the sessions that
/// were lost meanwhile.
pub const ELECTION: Duration = Duration::from_secs(180);

/// The ZooKeeper server that the tests of this process share. Use only a directory of your own.
///
/// # Panics
/// If it cannot be started.
pub async fn zookeeper() -> &'static ZooKeeper {
    static SHARED: OnceCell<ZooKeeper> = OnceCell::const_new();
    SHARED.get_or_init(ZooKeeper::start).await
}

/// A ZooKeeper server, or an ensemble of three, for one test. Its ticks are 100 ms.
///
/// Dropping it ends the servers and returns when they are gone.
#[derive(Debug)]
pub struct ZooKeeper {
    servers: Vec<Owned>,
    addresses: Vec<String>,
}

impl ZooKeeper {
    /// Starts one server, without data.
    ///
    /// # Panics
    /// If it cannot be started, for instance because `zookeeper` is not installed.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts one server, with more options of the Java machine, `-..`, and lines of the
    /// configuration.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start_with(settings: &[&str]) -> Self {
        let settings = settings.iter().copied().map(String::from);
        Self::started(vec![settings.collect()]).await
    }

    /// Starts an ensemble of three, without data; it has a leader when this returns.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_ensemble() -> Self {
        Self::start_ensemble_with(&[]).await
    }

    /// Starts an ensemble of three, with properties of the Java machines, `-D..`.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_ensemble_with(properties: &[&str]) -> Self {
        let port = || port::free().unwrap_or_else(|error| panic!("no port: {error}"));
        let members: Vec<_> = (1..=3)
            .map(|id| format!("server.{id}=127.0.0.1:{}:{}", port(), port()))
            .collect();
        let arguments = (1..=3).map(|id| {
            let own = [format!("myid={id}")].into_iter();
            let properties = properties.iter().copied().map(String::from);
            own.chain(properties).chain(members.clone()).collect()
        });
        Self::started(arguments.collect()).await
    }

    async fn started(arguments: Vec<Vec<String>>) -> Self {
        // All at once: no server of an ensemble is ready before there are two.
        let servers = arguments
            .into_iter()
            .map(|arguments| Owned::start(ServerKind::ZooKeeper, arguments));
        let servers = join_all(servers).await;
        let address = |server: &Owned| {
            let url = server.running().url;
            url.rsplit('/').next().unwrap_or_default().to_owned()
        };
        let ensemble = Self {
            addresses: servers.iter().map(address).collect(),
            servers,
        };
        ensemble.until_all_serve().await;
        ensemble
    }

    /// The URL to connect to, `zookeeper://127.0.0.1:PORT,..`. It stays the same across restarts.
    pub fn url(&self) -> String {
        format!("zookeeper://{}", self.servers())
    }

    /// Hosts and ports, separated by commas.
    pub fn servers(&self) -> String {
        self.addresses.join(",")
    }

    /// Host and port of each server.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Waits until all serve, and one of them leads.
    ///
    /// # Panics
    /// If it takes longer than [`ELECTION`].
    pub async fn until_all_serve(&self) {
        for address in &self.addresses {
            until_within(ELECTION, "the server serves", || async {
                mode(address).await.is_some()
            })
            .await;
        }
    }

    /// The number of the server that leads.
    ///
    /// # Panics
    /// If there is no leader within [`ELECTION`].
    pub async fn leader(&self) -> usize {
        let leader = std::sync::OnceLock::new();
        until_within(ELECTION, "there is a leader", || async {
            for (number, address) in self.addresses.iter().enumerate() {
                if mode(address).await.as_deref() == Some("leader") {
                    return leader.set(number).is_ok();
                }
            }
            false
        })
        .await;
        leader.into_inner().unwrap_or_default()
    }

    /// The number of the last transaction that a server knows; `None` if it does not serve.
    pub async fn last_zxid(&self, number: usize) -> Option<u64> {
        let told = told(&self.addresses[number]).await?;
        let zxid = told
            .lines()
            .find_map(|line| line.strip_prefix("Zxid: 0x"))?;
        u64::from_str_radix(zxid.trim(), 16).ok()
    }

    /// Kills a server with SIGKILL.
    ///
    /// # Panics
    /// If that fails.
    pub async fn kill(&self, number: usize) {
        self.servers[number].order(Order::Kill).await;
    }

    /// Starts a killed server again, with its data. It serves only if another server does, unless
    /// it is alone.
    ///
    /// # Panics
    /// If that fails.
    pub async fn restart(&self, number: usize) {
        self.servers[number].order(Order::Start).await;
    }

    /// Stops a server with SIGSTOP: connections stay open, but nothing is answered.
    ///
    /// # Panics
    /// If that fails.
    pub async fn pause(&self, number: usize) {
        self.servers[number].order(Order::Pause).await;
    }

    /// Lets a stopped server go on.
    ///
    /// # Panics
    /// If that fails.
    pub async fn resume(&self, number: usize) {
        self.servers[number].order(Order::Resume).await;
    }
}

/// `standalone`, `leader` or `follower`; `None` if it does not serve.
async fn mode(address: &str) -> Option<String> {
    let told = told(address).await?;
    let mode = told.lines().find_map(|line| line.strip_prefix("Mode: "))?;
    Some(mode.to_owned())
}

/// A server's report about itself.
async fn told(address: &str) -> Option<String> {
    let ask = async {
        let mut connection = TcpStream::connect(address).await?;
        connection.write_all(b"srvr").await?;
        let mut told = String::new();
        connection.read_to_string(&mut told).await?;
        io::Result::Ok(told)
    };
    timeout(Duration::from_secs(5), ask).await.ok()?.ok()
}
