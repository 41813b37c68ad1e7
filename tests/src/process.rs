//! The workspace's own programs as child processes that talk in lines of JSON.
//!
//! ```no_run
//! # async fn f() {
//! # use e2e::process::Process;
//! let mut worker = Process::spawn("e2e-worker", ["--url", "redis://127.0.0.1:6379"]);
//! let acquired: serde_json::Value = worker.event().await;
//! worker.pause().await;
//! // .. the worker's lease runs out, another client gets the lock ..
//! worker.resume();
//! # }
//! ```

use std::{ffi::OsStr, fs::File, io, path::Path, process::ExitStatus, process::Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{signal, warden::workspace_binary};

/// A running program of this workspace.
///
/// It leads a process group, and dropping it kills the whole group, stopped or not. If the test
/// itself is killed, on Linux the kernel kills this process, too. On other systems the process must
/// end when its standard input ends. On all systems this is true of the processes that it has
/// started.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a program with piped input and output; its errors go to the standard error of the
    /// test.
    ///
    /// Wait for its first line before you pause it: until then it may not have reached its `main`.
    ///
    /// # Panics
    /// If the program was not built or cannot be started.
    pub fn spawn<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::try_spawn(name, arguments, Stdio::inherit())
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"))
    }

    /// Starts a program whose standard error goes to a file, so that its log can be read.
    ///
    /// # Panics
    /// If the program was not built or cannot be started, or if the file cannot be written.
    pub fn spawn_with_log<A: AsRef<OsStr>>(
        name: &str,
        arguments: impl IntoIterator<Item = A>,
        log: &Path,
    ) -> Self {
        let log = File::create(log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        Self::try_spawn(name, arguments, log.into())
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"))
    }

    fn try_spawn<A: AsRef<OsStr>>(
        name: &str,
        arguments: impl IntoIterator<Item = A>,
        errors: Stdio,
    ) -> io::Result<Self> {
        let mut child = Command::new(workspace_binary("e2e-warden")?)
            .args(["exec", &std::process::id().to_string()])
            .arg(workspace_binary(name)?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(id), Some(output)) = (child.id(), child.stdout.take()) else {
            return Err(io::Error::other("no process id or no standard output"));
        };
        Ok(Self {
            name: name.to_owned(),
            pid: signal::pid(id)?,
            input: child.stdin.take(),
            output: BufReader::new(output).lines(),
            child,
        })
    }

    /// The process id.
    pub const fn id(&self) -> Pid {
        self.pid
    }

    /// The next line that it prints; `None` at the end of its output.
    ///
    /// # Panics
    /// If the line is not UTF-8 or cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe: no line is lost.
    pub async fn line(&mut self) -> Option<String> {
        let line = self.output.next_line().await;
        line.unwrap_or_else(|error| panic!("cannot read what {} prints: {error}", self.name))
    }

    /// The next line that it prints, read as JSON.
    ///
    /// # Panics
    /// If the output has ended, or if the line is something else.
    ///
    /// # Cancel safety
    /// Cancel safe: no line is lost.
    pub async fn event<T: DeserializeOwned>(&mut self) -> T {
        let Some(line) = self.line().await else {
            panic!("{} ended, where an event was expected", self.name);
        };
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{} printed `{line}`: {error}", self.name))
    }

    /// Writes one line of JSON to its input.
    ///
    /// # Panics
    /// If the program does not read any more.
    ///
    /// # Cancel safety
    /// Not cancel safe: half a line may have been written.
    pub async fn send(&mut self, message: &(impl Serialize + Sync)) {
        let Some(input) = &mut self.input else {
            panic!("the input of {} has been closed", self.name);
        };
        let sent = async {
            let mut line = serde_json::to_vec(message)?;
            line.push(b'\n');
            input.write_all(&line).await
        };
        sent.await
            .unwrap_or_else(|error| panic!("cannot write to {}: {error}", self.name));
    }

    /// Stops it with SIGSTOP and returns when all its threads stand still.
    ///
    /// # Panics
    /// If it has ended.
    ///
    /// # Cancel safety
    /// It may or may not be stopped.
    pub async fn pause(&self) {
        let pid = self.pid;
        let stopped = tokio::task::spawn_blocking(move || signal::pause(pid)).await;
        stopped
            .map_err(io::Error::from)
            .and_then(|done| done)
            .unwrap_or_else(|error| panic!("cannot stop {}: {error}", self.name));
    }

    /// Lets it go on with SIGCONT.
    ///
    /// # Panics
    /// If it has ended.
    pub fn resume(&self) {
        signal::resume(self.pid)
            .unwrap_or_else(|error| panic!("cannot resume {}: {error}", self.name));
    }

    /// Kills it and the processes that it has started with SIGKILL, and returns when it is gone.
    ///
    /// # Panics
    /// If the system refuses.
    pub async fn kill(&mut self) {
        self.kill_group();
        let killed = self.child.kill().await;
        killed.unwrap_or_else(|error| panic!("cannot kill {}: {error}", self.name));
    }

    /// Closes its input and returns when it has ended by itself.
    ///
    /// # Panics
    /// If the system does not know the exit status.
    pub async fn finish(&mut self) -> ExitStatus {
        drop(self.input.take());
        let status = self.child.wait().await;
        status.unwrap_or_else(|error| panic!("cannot wait for {}: {error}", self.name))
    }

    fn kill_group(&self) {
        // Once the child has been waited for, its pid may belong to another process.
        if self.child.id().is_none() {
            return;
        }
        if let Err(error) = kill_process_group(self.pid, Signal::KILL) {
            eprintln!("cannot kill the processes of {}: {error}", self.name);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}
