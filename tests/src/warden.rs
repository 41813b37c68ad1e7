//! The warden: a small process between a test and one server.
//!
//! A test may end in a panic, an abort or a SIGKILL, and then no `Drop` runs. But the kernel always
//! closes the dead process's pipes, so the warden (`e2e-warden`, the server's parent) waits on its
//! standard input: every line is an [`Order`], and the end of input means that the test is gone. It
//! then ends the server and removes its directory.

use std::{
    env, io,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde::{Deserialize, Serialize};

/// Which server a warden runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// `redis-server`, without persistence.
    Redis,
    /// `redis-server` with a wall clock that [`wall_clock`](crate::wall_clock) can move.
    RedisWithOwnClock,
    /// `redis-server` that only speaks TLS, with the certificates in its arguments.
    RedisTls,
    /// `redis-server` as a sentinel that does not watch over anything yet.
    RedisSentinel,
    /// `postgres`, with a cluster of its own. Its arguments are those of the server. Before them
    /// may stand `--copy-of=URL`, to begin as a base backup of another server, or
    /// `--standby-of=URL`, to replicate that server afterwards, too.
    Postgres,
    /// `postgres` with a wall clock that [`wall_clock`](crate::wall_clock) can move.
    PostgresWithOwnClock,
    /// `mariadbd`, with a data directory of its own.
    MariaDb,
    /// MySQL's `mysqld`, with a data directory of its own.
    MySql,
    /// `pgbouncer`, in front of the database and in the mode that its arguments give, and with the
    /// settings that follow.
    PgBouncer,
    /// `chromedriver`, which starts browsers.
    ChromeDriver,
    /// `etcd`, alone or as part of a cluster that its arguments describe. It only speaks TLS if
    /// they contain `--cert-file`.
    Etcd,
    /// ZooKeeper, alone or as part of an ensemble. Its arguments are lines of its configuration,
    /// `myid=N`, and options of the Java machine, `-..`.
    ZooKeeper,
}

impl ServerKind {
    /// The warden's argument.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::RedisWithOwnClock => "redis-with-own-clock",
            Self::RedisTls => "redis-tls",
            Self::RedisSentinel => "redis-sentinel",
            Self::Postgres => "postgres",
            Self::PostgresWithOwnClock => "postgres-with-own-clock",
            Self::MariaDb => "mariadb",
            Self::MySql => "mysql",
            Self::PgBouncer => "pgbouncer",
            Self::ChromeDriver => "chromedriver",
            Self::Etcd => "etcd",
            Self::ZooKeeper => "zookeeper",
        }
    }

    /// Reads the warden's argument.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Redis,
            Self::RedisWithOwnClock,
            Self::RedisTls,
            Self::RedisSentinel,
            Self::Postgres,
            Self::PostgresWithOwnClock,
            Self::MariaDb,
            Self::MySql,
            Self::PgBouncer,
            Self::ChromeDriver,
            Self::Etcd,
            Self::ZooKeeper,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

/// A test's order to a warden; each order is answered by one [`Reply`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// SIGSTOP, answered when the server has stopped.
    Pause,
    /// SIGCONT.
    Resume,
    /// SIGKILL to the server and all its children, answered when they are gone.
    Kill,
    /// The quickest end that the server supports. It loses only the server's memory. For Postgres
    /// this is an immediate shutdown, for the others SIGKILL.
    Stop,
    /// The end as an operator ends the server: for Postgres a fast shutdown, which ends the
    /// sessions and saves everything. For the others the same as `Stop`.
    ShutDown,
    /// Starts a server that was killed or stopped, on the same port.
    Start,
}

/// A warden's answer. The first one comes without an order, when the server accepts connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The order was carried out. This is the present server.
    Done(Running),
    /// The order was not carried out, and why.
    Failed(String),
}

/// Where to find a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    /// The process id of the server, or of the last one if it was killed.
    pub pid: u32,
    /// The URL to connect to.
    pub url: String,
    /// The directory with all its files.
    pub dir: PathBuf,
}

impl Running {
    /// The file in [`dir`](Self::dir) with all output of the server.
    pub const LOG: &'static str = "server.log";

    /// Puts the description of a server together.
    pub const fn new(pid: u32, url: String, dir: PathBuf) -> Self {
        Self { pid, url, dir }
    }
}

/// The test's end of the pipes to a warden. Dropping it ends the server and waits until it is gone.
///
/// Everything here blocks, and does not belong to an async runtime: a server that several tests
/// share outlives the runtime of the test that happened to start it.
#[derive(Debug)]
pub struct Warden {
    child: Child,
    orders: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    running: Running,
}

impl Warden {
    /// Starts a server and returns once it accepts connections.
    ///
    /// # Errors
    /// If the warden's binary was not built, or if it cannot start the server.
    pub fn start(kind: ServerKind) -> io::Result<Self> {
        Self::start_with(kind, &[])
    }

    /// Starts a server with arguments.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(kind: ServerKind, arguments: &[String]) -> io::Result<Self> {
        let mut child = Command::new(workspace_binary("e2e-warden")?)
            .arg(kind.name())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C goes to the terminal's process group; the warden has to survive it.
            .process_group(0)
            .spawn()?;
        let orders = child.stdin.take();
        let Some(replies) = child.stdout.take() else {
            return Err(io::Error::other("the warden has no standard output"));
        };
        let mut replies = BufReader::new(replies);
        let running = read_reply(&mut replies)?;
        Ok(Self {
            child,
            orders,
            replies,
            running,
        })
    }

    /// Where the server is.
    pub const fn running(&self) -> &Running {
        &self.running
    }

    /// Gives an order and waits until it has been carried out.
    ///
    /// # Errors
    /// If the warden could not do it, or is gone.
    pub fn order(&mut self, order: Order) -> io::Result<()> {
        let Some(orders) = &mut self.orders else {
            return Err(io::Error::other("the warden has no standard input"));
        };
        let mut line = serde_json::to_vec(&order)?;
        line.push(b'\n');
        orders.write_all(&line)?;
        self.running = read_reply(&mut self.replies)?;
        Ok(())
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Err(error) = self.child.wait() {
            eprintln!(
                "cannot wait for the warden of {}: {error}",
                self.running.url
            );
        }
    }
}

fn read_reply(replies: &mut impl BufRead) -> io::Result<Running> {
    let mut line = String::new();
    if replies.read_line(&mut line)? == 0 {
        return Err(io::Error::other("the warden ended without an answer"));
    }
    match serde_json::from_str(&line)? {
        Reply::Done(running) => Ok(running),
        Reply::Failed(why) => Err(io::Error::other(why)),
    }
}

/// Finds a program of this workspace next to the running test: in `target/<profile>`.
///
/// # Errors
/// If it has not been built. `cargo test -p e2e` builds the programs of this package only.
pub fn workspace_binary(name: &str) -> io::Result<PathBuf> {
    let mut dir = env::current_exe()?;
    dir.pop();
    if dir.ends_with("deps") {
        dir.pop();
    }
    let path = dir.join(name);
    if path.exists() {
        return Ok(path);
    }
    Err(io::Error::other(format!(
        "{} is missing: run `scripts/test build` first",
        path.display()
    )))
}
