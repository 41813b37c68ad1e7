use std::{
    ffi::OsString,
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use e2e::{
    port, signal,
    warden::{Running, ServerKind},
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::{
    chrome_driver::ChromeDriver, cluster::Cluster, etcd::Etcd, log::Log, mariadb::MariaDb,
    mysql::MySql, pgbouncer::PgBouncer, redis::RedisServer, zookeeper::ZooKeeper,
};

/// Two cores under full load start a Postgres within two seconds.
const START: Duration = Duration::from_secs(60);
/// After this time a server is killed with SIGKILL.
const STOP: Duration = Duration::from_secs(10);
/// Another process may take the port between our check and the server's start.
const START_ATTEMPTS: u32 = 5;

/// One server, its files, and its place in the process tree.
pub(crate) struct Server {
    process: Option<ServerProcess>,
    recipe: Recipe,
    last_pid: u32,
    port: u16,
    dir: TempDir,
}

impl Server {
    pub(crate) fn start(kind: ServerKind, arguments: Vec<OsString>) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("palisade-e2e-").tempdir()?;
        let recipe = Recipe::prepare(kind, arguments, &dir)?;
        let mut attempt = 1;
        let (port, process) = loop {
            let port = port::free()?;
            match ServerProcess::spawn(recipe.command(port, &dir)?, &log(&dir)) {
                Ok(process) => break (port, process),
                Err(error) if attempt == START_ATTEMPTS => return Err(error),
                Err(_) => attempt += 1,
            }
        };
        Ok(Self {
            last_pid: process.child.id(),
            process: Some(process),
            recipe,
            port,
            dir,
        })
    }

    pub(crate) fn running(&self) -> Running {
        let url = self.recipe.url(self.port);
        Running::new(self.last_pid, url, self.dir.path().to_owned())
    }

    pub(crate) fn pause(&self) -> io::Result<()> {
        signal::pause(self.pid()?)
    }

    pub(crate) fn resume(&self) -> io::Result<()> {
        signal::resume(self.pid()?)
    }

    /// Kills the server with SIGKILL. Does nothing if it has already been killed.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.process.take().map_or(Ok(()), ServerProcess::kill)
    }

    /// Ends the server as it ends with its warden. Does nothing if it has already been killed.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.end(self.recipe.stop_signal())
    }

    /// Ends the server as an operator does. Does nothing if it has already been killed.
    pub(crate) fn shut_down(&mut self) -> io::Result<()> {
        self.end(self.recipe.shutdown_signal())
    }

    fn end(&mut self, signal: Signal) -> io::Result<()> {
        self.process
            .take()
            .map_or(Ok(()), |process| process.stop(signal))
    }

    pub(crate) fn start_again(&mut self) -> io::Result<()> {
        if self.process.is_some() {
            return Err(io::Error::other("the server runs already: kill it first"));
        }
        let command = self.recipe.command(self.port, &self.dir)?;
        let process = ServerProcess::spawn(command, &log(&self.dir))?;
        self.last_pid = process.child.id();
        self.process = Some(process);
        Ok(())
    }

    /// Ends the server and removes its files.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.stop()?;
        self.dir.close()
    }

    fn pid(&self) -> io::Result<Pid> {
        let Some(process) = &self.process else {
            return Err(io::Error::other(
                "the server has been killed: start it first",
            ));
        };
        process.pid()
    }
}

fn log(dir: &TempDir) -> PathBuf {
    dir.path().join(Running::LOG)
}

/// How a kind of server is started and addressed.
enum Recipe {
    Redis(RedisServer),
    Postgres(Cluster),
    MariaDb(MariaDb),
    MySql(MySql),
    PgBouncer(Box<PgBouncer>),
    ChromeDriver,
    Etcd(Etcd),
    ZooKeeper(ZooKeeper),
}

impl Recipe {
    fn prepare(kind: ServerKind, arguments: Vec<OsString>, dir: &TempDir) -> io::Result<Self> {
        match kind {
            ServerKind::Postgres | ServerKind::PostgresWithOwnClock => {
                let has_own_clock = kind == ServerKind::PostgresWithOwnClock;
                Cluster::create(dir.path(), arguments, has_own_clock).map(Self::Postgres)
            }
            ServerKind::MariaDb => MariaDb::create(dir.path(), arguments).map(Self::MariaDb),
            ServerKind::MySql => MySql::create(dir.path(), arguments).map(Self::MySql),
            ServerKind::PgBouncer => PgBouncer::prepare(&arguments, dir.path())
                .map(|server| Self::PgBouncer(Box::new(server))),
            ServerKind::ChromeDriver => Ok(Self::ChromeDriver),
            ServerKind::Etcd => Ok(Self::Etcd(Etcd::new(arguments))),
            ServerKind::ZooKeeper => {
                ZooKeeper::prepare(&arguments, dir.path()).map(Self::ZooKeeper)
            }
            redis => RedisServer::prepare(redis, arguments, dir.path()).map(Self::Redis),
        }
    }

    fn command(&self, port: u16, dir: &TempDir) -> io::Result<Command> {
        match self {
            Self::Redis(server) => server.command(port, dir.path()),
            Self::Postgres(cluster) => cluster.command(port),
            Self::MariaDb(server) => Ok(server.command(port)),
            Self::MySql(server) => Ok(server.command(port)),
            Self::PgBouncer(server) => server.command(port),
            Self::ChromeDriver => Ok(ChromeDriver::command(port, dir.path())),
            Self::Etcd(server) => Ok(server.command(port, dir.path())),
            Self::ZooKeeper(server) => server.command(port, dir.path()),
        }
    }

    fn url(&self, port: u16) -> String {
        match self {
            Self::Redis(server) => server.url(port),
            Self::Postgres(cluster) => cluster.url(port),
            Self::MariaDb(server) => server.url(port),
            Self::MySql(server) => server.url(port),
            Self::PgBouncer(server) => server.url(port),
            Self::ChromeDriver => ChromeDriver::url(port),
            Self::Etcd(server) => server.url(port),
            Self::ZooKeeper(_) => ZooKeeper::url(port),
        }
    }

    /// A server that is simply killed has nothing to save. Postgres would leave shared memory
    /// behind: SIGQUIT is its immediate shutdown.
    const fn stop_signal(&self) -> Signal {
        match self {
            Self::Postgres(_) => Signal::QUIT,
            _ => Signal::KILL,
        }
    }

    /// For Postgres this is its fast shutdown.
    const fn shutdown_signal(&self) -> Signal {
        match self {
            Self::Postgres(_) => Signal::INT,
            _ => self.stop_signal(),
        }
    }
}

/// A server that accepts connections.
struct ServerProcess {
    child: Child,
    log: Log,
}

impl ServerProcess {
    /// Starts the server; its output is also written to a file.
    fn spawn(mut command: Command, log: &Path) -> io::Result<Self> {
        let copy = File::options().append(true).create(true).open(log)?;
        let (output, ours) = io::pipe()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(ours.try_clone()?)
            .stderr(ours)
            // When a test dies, the kernel sends SIGHUP to the warden's process group if a stopped
            // process is in it: a paused server must not be in that group.
            .process_group(0)
            .spawn()
            .map_err(|error| not_started(&command, &error))?;
        drop(command); // it holds the pipe open, and the log would never end
        let process = Self {
            child,
            log: Log::follow(output, copy),
        };
        match process.log.wait_ready(START) {
            Ok(()) => Ok(process),
            Err(error) => process.kill().and(Err(error)),
        }
    }

    fn pid(&self) -> io::Result<Pid> {
        signal::pid(self.child.id())
    }

    fn stop(self, stop: Signal) -> io::Result<()> {
        if stop == Signal::KILL {
            return self.kill();
        }
        let pid = self.pid()?;
        kill_process(pid, stop)?;
        kill_process(pid, Signal::CONT)?; // a stopped process acts on SIGKILL only
        if self.log.wait_end(STOP) {
            return self.wait();
        }
        eprintln!("e2e-warden: the server ignores {stop:?}, killing it");
        self.kill()
    }

    fn kill(self) -> io::Result<()> {
        // While it is stopped, it cannot wait for its children, so their pids remain theirs.
        if signal::pause(self.pid()?).is_ok() {
            for child in signal::children(self.pid()?)? {
                kill_process(child, Signal::KILL)?;
            }
        }
        // Includes its process group: a browser is not a child of the process that started it.
        kill_process_group(self.pid()?, Signal::KILL)?;
        let ended = self.log.wait_end(STOP);
        self.wait()?;
        if ended {
            return Ok(());
        }
        Err(io::Error::other(
            "the server is dead, but its children live on",
        ))
    }

    fn wait(mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }
}

fn not_started(command: &Command, error: &io::Error) -> io::Error {
    let program = command.get_program().display();
    if error.kind() == io::ErrorKind::NotFound {
        return io::Error::other(format!(
            "{program} is not installed: run scripts/test, which installs what is missing"
        ));
    }
    io::Error::other(format!("cannot run {program}: {error}"))
}
