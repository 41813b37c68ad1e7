use std::{ffi::OsString, fs, io, path::Path, process::Command};

use e2e::{wall_clock, warden::ServerKind};

/// The state file of a sentinel. A sentinel refuses to start without one.
const SENTINEL_FILE: &str = "sentinel.conf";

/// How one of the kinds of `redis-server` is started and addressed.
pub(crate) struct RedisServer {
    kind: ServerKind,
    /// The arguments that the test adds to the command line.
    arguments: Vec<OsString>,
}

impl RedisServer {
    pub(crate) fn prepare(
        kind: ServerKind,
        arguments: Vec<OsString>,
        dir: &Path,
    ) -> io::Result<Self> {
        if kind == ServerKind::RedisSentinel {
            fs::write(dir.join(SENTINEL_FILE), "")?;
        }
        Ok(Self { kind, arguments })
    }

    pub(crate) fn command(&self, port: u16, dir: &Path) -> io::Result<Command> {
        let mut command = Command::new("redis-server");
        if self.kind == ServerKind::RedisSentinel {
            command.arg(dir.join(SENTINEL_FILE)).arg("--sentinel");
        } else {
            command.args(["--save", "", "--appendonly", "no"]);
        }
        let port = port.to_string();
        match self.kind {
            ServerKind::RedisTls => command.args(["--port", "0", "--tls-port", &port]),
            _ => command.args(["--port", &port]),
        };
        command.args(["--bind", "127.0.0.1", "--dir"]).arg(dir);
        command.args(&self.arguments);
        if self.kind == ServerKind::RedisWithOwnClock {
            wall_clock::make_movable(&mut command, dir)?;
        }
        Ok(command)
    }

    pub(crate) fn url(&self, port: u16) -> String {
        let scheme = match self.kind {
            ServerKind::RedisTls => "rediss",
            _ => "redis",
        };
        format!("{scheme}://127.0.0.1:{port}")
    }
}
