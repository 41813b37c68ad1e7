use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ErrorKind as RedisKind, IntoConnectionInfo, RedisError,
    RedisResult, ScriptInvocation, ServerErrorKind, Value,
    aio::MultiplexedConnection,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use url::Url;

use super::{RedisOptions, error::translate, fitness, layout::Layout};
use crate::{Error, Operation};

/// The one owner of the connection that commands go out on; it makes a new one when one broke.
///
/// A command is never sent twice here: whether that is right is for the caller to know. Pushes come
/// in on a connection of their own (see [`Wakeups`](super::wakeups::Wakeups)), so that an answer on
/// this one can only belong to the command before it.
pub(super) struct Connection {
    client: Client,
    layout: Layout,
    timeout: Duration,
    current: Mutex<Option<Link>>,
    /// Held while connecting, so that it happens once for all who wait for it.
    connecting: tokio::sync::Mutex<Option<Error>>,
    attempts: AtomicU64,
}

/// One connection to one server. What was learnt on it means nothing on the next.
#[derive(Clone)]
pub(super) struct Link {
    number: u64,
    commands: MultiplexedConnection,
    /// Per shard, whether its counter has been lifted to the clock.
    raised: Arc<[AtomicBool]>,
}

impl Connection {
    /// Connects, and agrees with the other clients on the layout of keys.
    pub(super) async fn open(
        client: Client,
        options: &RedisOptions,
        layout: Layout,
    ) -> Result<Self, Error> {
        let connection = Self {
            client,
            layout,
            timeout: options.response_timeout,
            current: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(None),
            attempts: AtomicU64::new(0),
        };
        connection.link(Operation::Connect).await?;
        Ok(connection)
    }

    /// The present connection, or a new one. If it fails, nothing of the operation was sent.
    pub(super) async fn link(&self, operation: Operation) -> Result<Link, Error> {
        if let Some(link) = self.current().clone() {
            return Ok(link);
        }
        let seen = self.attempts.load(Ordering::Acquire);
        let mut last_failure = self.connecting.lock().await;
        if let Some(link) = self.current().clone() {
            return Ok(link);
        }
        // Whoever waited while another one tried in vain need not try again.
        if self.attempts.load(Ordering::Acquire) != seen
            && let Some(error) = &*last_failure
        {
            return Err(error.clone());
        }
        let connected = self.connect(operation).await;
        self.attempts.fetch_add(1, Ordering::Release);
        *last_failure = connected.as_ref().err().cloned();
        let link = connected?;
        *self.current() = Some(link.clone());
        Ok(link)
    }

    async fn connect(&self, operation: Operation) -> Result<Link, Error> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let commands = connecting
            .await
            .map_err(|error| translate(error, operation).not_applied())?;
        let number = self.attempts.load(Ordering::Acquire);
        let raised = (0..self.layout.shards)
            .map(|_| AtomicBool::new(false))
            .collect();
        let link = Link {
            number,
            commands,
            raised,
        };
        fitness::check(&mut link.commands.clone(), operation).await?;
        self.layout
            .agree(&mut link.commands.clone(), operation)
            .await?;
        Ok(link)
    }

    /// Compares the layout of keys again.
    pub(super) async fn agree(&self, operation: Operation) -> Result<(), Error> {
        let link = self.link(operation).await?;
        self.layout
            .agree(&mut link.commands.clone(), operation)
            .await
    }

    /// Runs a script, loading it if the server does not know it, and reads its answer.
    pub(super) async fn run<T>(
        &self,
        link: &Link,
        script: &ScriptInvocation<'_>,
        parse: impl FnOnce(Value) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let answer = script
            .invoke_async(&mut link.commands.clone())
            .await
            .and_then(parse);
        if let Err(error) = &answer
            && breaks_connection(error)
        {
            self.discard(link);
        }
        answer
    }

    fn discard(&self, link: &Link) {
        let mut current = self.current();
        if current
            .as_ref()
            .is_some_and(|current| current.number == link.number)
        {
            *current = None;
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Link>> {
        // Never held across an await, and nothing under it panics.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    /// Whether the counter of a shard still has to be lifted on this connection.
    pub(super) fn must_raise(&self, shard: u16) -> bool {
        !self.raised[usize::from(shard)].load(Ordering::Relaxed)
    }

    pub(super) fn has_raised(&self, shard: u16) {
        self.raised[usize::from(shard)].store(true, Ordering::Relaxed);
    }
}

/// Everything after which answers may be missing, or be those of a server that must not be asked.
///
/// A connection that does not answer in time is given up too: nothing tells it from one whose
/// other end has vanished.
fn breaks_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            RedisKind::Parse
                | RedisKind::UnexpectedReturnType
                | RedisKind::Server(ServerErrorKind::ReadOnly)
        )
}

/// The client library's settings for this server.
pub(super) fn client(url: &Url, options: &RedisOptions) -> RedisResult<Client> {
    // Systems count keepalive in whole seconds. It is for the connection that only listens; one on
    // which an answer is late is given up sooner.
    let silence = std::cmp::max(options.response_timeout, Duration::from_secs(1));
    let keepalive = TcpKeepalive::new()
        .with_time(silence * 2)
        .with_interval(silence);
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(silence * 2);
    Client::open(url.as_str().into_connection_info()?.set_tcp_settings(tcp))
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: it may show a password.
        f.debug_struct("Connection")
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
