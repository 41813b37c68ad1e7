use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind as RedisKind, Pipeline, RedisError, RedisFuture,
    RedisResult, ServerErrorKind, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};

use lock_core::backend::{Moment, support::lock};

/// A counter that was lifted to the clock is not lifted again for this time. In a cluster a
/// connection may survive while its server is demoted and becomes a primary again with an older
/// counter. That takes two failovers, and the second begins with a server that is silent for longer
/// than this time.
const RAISED_FOR: Duration = Duration::from_secs(1);

/// One connection to one server. Each request has a clone.
#[derive(Clone)]
pub(crate) struct Link {
    commands: MultiplexedConnection,
    shared: Arc<Shared>,
    /// Whether each command is sent with `ASKING`, because the slot is still being moved to this
    /// node.
    asking: bool,
}

/// The data of a connection. They mean nothing on the next connection.
struct Shared {
    number: u64,
    server: String,
    /// For each shard, the moment from which its counter has to be lifted to the clock again, in ms
    /// since the clock's origin.
    raise: Box<[AtomicU64]>,
    /// The place where this is the present connection, until it breaks.
    home: Weak<Current>,
}

/// The present connection.
#[derive(Debug, Default)]
pub(crate) struct Current(Mutex<Option<Link>>);

impl Current {
    /// Gives a connection up, unless it was replaced already.
    pub(crate) fn discard(&self, number: u64) {
        let mut current = self.lock();
        if current.as_ref().is_some_and(|link| link.number() == number) {
            *current = None;
        }
    }

    pub(crate) fn link(&self) -> Option<Link> {
        self.lock().clone()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Link>> {
        lock(&self.0)
    }
}

/// Makes a connection that gives up on connecting, and on each answer, after `timeout`.
pub(crate) async fn dial(client: &Client, timeout: Duration) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(timeout));
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

/// A request to a server: a script or a command.
pub(crate) trait Request: Sync {
    /// Sends it once. A script that the server does not know is loaded first.
    fn send(&self, link: &mut Link) -> impl Future<Output = RedisResult<Value>> + Send;
}

impl Link {
    pub(crate) fn new(
        number: u64,
        server: String,
        commands: MultiplexedConnection,
        shards: u16,
        home: Weak<Current>,
    ) -> Self {
        let shared = Shared {
            number,
            server,
            raise: (0..shards).map(|_| AtomicU64::new(0)).collect(),
            home,
        };
        Self {
            commands,
            shared: Arc::new(shared),
            asking: false,
        }
    }

    /// The same connection, for commands about a slot that another node of the cluster is handing
    /// over to this node.
    pub(crate) fn asking(self) -> Self {
        Self {
            asking: true,
            ..self
        }
    }

    /// Sends a request once. The connection is given up if that fails.
    pub(crate) async fn send(&mut self, request: &impl Request) -> RedisResult<Value> {
        let answer = request.send(self).await;
        self.unless_broken(answer)
    }

    /// Reads an answer. If it cannot be read, the connection is given up.
    pub(crate) fn read<T>(
        &self,
        answer: Value,
        parse: impl FnOnce(Value) -> RedisResult<T>,
    ) -> RedisResult<T> {
        self.unless_broken(parse(answer))
    }

    fn unless_broken<T>(&self, answer: RedisResult<T>) -> RedisResult<T> {
        if answer.as_ref().is_err_and(breaks_connection)
            && let Some(home) = self.shared.home.upgrade()
        {
            home.discard(self.number());
        }
        answer
    }

    /// Sends one command, and reads its answer. The command is sent before any request that is
    /// first polled later, unless the connection is full.
    pub(crate) async fn run(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = if self.asking {
            self.req_packed_command(command).await
        } else {
            self.commands.send_packed_command(command).await
        };
        answer.and_then(Value::extract_error)
    }

    /// A number that distinguishes the connections to one server.
    pub(crate) fn number(&self) -> u64 {
        self.shared.number
    }

    /// The address of the server.
    pub(crate) fn server(&self) -> &str {
        &self.shared.server
    }

    /// Whether the next request has to lift the counter of a shard.
    pub(crate) fn must_raise(&self, shard: u16, now: Moment) -> bool {
        millis(now) >= self.shared.raise[usize::from(shard)].load(Ordering::Relaxed)
    }

    /// Notes that a request that was sent at this moment or later has drawn a token, and has lifted
    /// the counter if it had to.
    pub(crate) fn has_raised(&self, shard: u16, sent: Moment) {
        let raise = &self.shared.raise[usize::from(shard)];
        // If the counter did not have to be lifted at that moment, it was not lifted.
        if self.must_raise(shard, sent) {
            raise.fetch_max(millis(sent + RAISED_FOR), Ordering::Relaxed);
        }
    }
}

impl Request for Cmd {
    fn send(&self, link: &mut Link) -> impl Future<Output = RedisResult<Value>> + Send {
        link.run(self)
    }
}

impl<R: Request> Request for &R {
    fn send(&self, link: &mut Link) -> impl Future<Output = RedisResult<Value>> + Send {
        (**self).send(link)
    }
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        if !self.asking {
            return self.commands.req_packed_command(cmd);
        }
        // `ASKING` holds for the next command on the connection. Others use the connection, too, so
        // both commands have to be sent together.
        let mut both = Pipeline::with_capacity(2);
        both.cmd("ASKING").ignore().add_command(cmd.clone());
        Box::pin(async move {
            let mut answers: Vec<Value> = both.query_async(&mut self.commands).await?;
            Ok(answers.pop().unwrap_or(Value::Nil))
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.commands.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.commands.get_db()
    }
}

/// The moment in ms, rounded down, because a time that is too early is harmless.
fn millis(moment: Moment) -> u64 {
    u64::try_from(moment.since_origin().as_millis()).unwrap_or(u64::MAX)
}

/// Errors after which answers may be missing, or may come from a server that must not be asked.
///
/// A connection that does not answer in time is given up, too, because it may be one whose other
/// end has vanished.
#[must_use]
pub fn breaks_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            RedisKind::Parse
                | RedisKind::UnexpectedReturnType
                | RedisKind::Server(ServerErrorKind::ReadOnly)
        )
        // The replicas of the server may follow another primary by now.
        || error.code() == Some("NOREPLICAS")
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("number", &self.number())
            .field("asking", &self.asking)
            .finish_non_exhaustive()
    }
}
