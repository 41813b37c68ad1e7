use std::{env, time::Duration};

use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, RedisResult, Value};
use tokio::sync::OnceCell;

use super::{Certificates, owned::Owned};
use crate::{
    wall_clock,
    warden::{Order, Running, ServerKind},
};

/// The variable that names a Redis server to use for [`redis()`] instead of starting one.
pub const REDIS_URL_VARIABLE: &str = "PALISADE_TEST_REDIS_URL";

/// The Redis server that the tests of this process share. Use only keys of your own.
///
/// # Panics
/// If it cannot be started.
pub async fn redis() -> &'static SharedRedis {
    static SHARED: OnceCell<SharedRedis> = OnceCell::const_new();
    SHARED.get_or_init(SharedRedis::new).await
}

/// See [`redis()`].
#[derive(Debug)]
pub struct SharedRedis {
    url: String,
    /// Never dropped, like all statics: its warden notices when the process ends.
    _own: Option<Redis>,
}

impl SharedRedis {
    async fn new() -> Self {
        if let Ok(url) = env::var(REDIS_URL_VARIABLE) {
            return Self { url, _own: None };
        }
        let own = Redis::start().await;
        Self {
            url: own.url().to_owned(),
            _own: Some(own),
        }
    }

    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// How far a server's wall clock is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockOffset {
    /// The clock shows a later time.
    Ahead(Duration),
    /// The clock shows an earlier time.
    Behind(Duration),
}

/// A Redis server for one test, without persistence, that may be stopped and killed.
///
/// Dropping it ends the server and returns when it is gone.
#[derive(Debug)]
pub struct Redis {
    url: String,
    server: Owned,
}

impl Redis {
    /// Starts an empty server; it accepts connections when this returns.
    ///
    /// # Panics
    /// If it cannot be started, for instance because `redis-server` is not installed.
    pub async fn start() -> Self {
        Self::start_as(ServerKind::Redis, &[]).await
    }

    /// Starts an empty server with more arguments on its command line.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start_with(arguments: &[&str]) -> Self {
        Self::start_as(ServerKind::Redis, arguments).await
    }

    /// A server that only speaks TLS, with more arguments on its command line. Its certificate is
    /// valid for 127.0.0.1, and it requires a certificate from the client.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start_with_tls(certificates: &Certificates, arguments: &[&str]) -> Self {
        let [ca, certificate, key] = [
            certificates.ca(),
            certificates.server(),
            certificates.server_key(),
        ];
        let tls = [
            ["--tls-ca-cert-file", &ca],
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-auth-clients", "yes"],
        ];
        let arguments = [&tls.concat(), arguments].concat();
        Self::start_as(ServerKind::RedisTls, &arguments).await
    }

    /// A sentinel that does not watch over anything yet.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start_sentinel(arguments: &[&str]) -> Self {
        Self::start_as(ServerKind::RedisSentinel, arguments).await
    }

    /// Starts an empty server with a wall clock of its own for [`set_clock`](Self::set_clock).
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start_with_own_clock() -> Self {
        Self::start_as(ServerKind::RedisWithOwnClock, &[]).await
    }

    async fn start_as(kind: ServerKind, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().copied().map(String::from).collect();
        let server = Owned::start(kind, arguments).await;
        let url = server.running().url;
        Self { url, server }
    }

    /// The URL to connect to, `redis://127.0.0.1:PORT`. It stays the same across restarts.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Host and port, `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or_default()
    }

    /// The port.
    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap_or_default()
    }

    /// Sends one command, on a connection of its own.
    ///
    /// # Panics
    /// If it is refused, not answered within 10 s, or has an answer of another type.
    pub async fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_command(words)
            .await
            .unwrap_or_else(|error| panic!("{words:?} to {}: {error}", self.url))
    }

    /// Sends one command to a server that may refuse it.
    ///
    /// # Errors
    /// Those of the server, and of the connection.
    pub async fn try_command<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let patience = Some(Duration::from_secs(10));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(patience)
            .set_response_timeout(patience);
        let mut connection = Client::open(self.url())?
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        Cmd::new().arg(words).query_async(&mut connection).await
    }

    /// Whether it considers itself a primary; false if it does not answer.
    pub async fn is_primary(&self) -> bool {
        let role: RedisResult<Vec<Value>> = self.try_command(&["ROLE"]).await;
        role.is_ok_and(|role| role.first() == Some(&Value::BulkString(b"master".to_vec())))
    }

    /// The server's process and files.
    pub fn running(&self) -> Running {
        self.server.running()
    }

    /// Kills the server with SIGKILL. All its data is lost, and every connection breaks.
    ///
    /// # Panics
    /// If that fails.
    pub async fn kill(&self) {
        self.server.order(Order::Kill).await;
    }

    /// Starts the server again on the same port, with no data. Kills it first if it still runs.
    ///
    /// # Panics
    /// If that fails.
    pub async fn restart_empty(&self) {
        self.restart().await;
    }

    /// Starts the server again on the same port, with the data in its files: none, unless its
    /// arguments say so. Kills it first if it still runs.
    ///
    /// # Panics
    /// If that fails.
    pub async fn restart(&self) {
        self.server.order(Order::Kill).await;
        self.server.order(Order::Start).await;
    }

    /// Stops the server with SIGSTOP: connections stay open, but nothing is answered.
    ///
    /// # Panics
    /// If that fails.
    pub async fn pause(&self) {
        self.server.order(Order::Pause).await;
    }

    /// Lets a stopped server go on. It then answers everything that was sent meanwhile.
    ///
    /// # Panics
    /// If that fails.
    pub async fn resume(&self) {
        self.server.order(Order::Resume).await;
    }

    /// Makes the server's wall clock jump, so that it is off by this much.
    ///
    /// # Panics
    /// If the server has no clock of its own.
    pub fn set_clock(&self, by: ClockOffset) {
        wall_clock::set(&self.running().dir, by)
            .unwrap_or_else(|error| panic!("cannot move the clock of {}: {error}", self.url));
    }
}
