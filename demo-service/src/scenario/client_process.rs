use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    signal::unix::{SignalKind, signal},
    time::timeout,
};

use crate::{
    events::ClientName,
    worker::{Job, Step},
};
use palisade_cli::Failure;

/// A client of the scenario: a real process that can be stopped and resumed.
///
/// A drop kills the process, even if it is stopped: SIGKILL needs no SIGCONT.
#[derive(Debug)]
pub(super) struct ClientProcess {
    name: ClientName,
    child: Child,
    pid: Pid,
    stdin: ChildStdin,
    steps: Lines<BufReader<ChildStdout>>,
    patience: Duration,
}

impl ClientProcess {
    /// Starts a client. `patience` is how long a single step may take.
    ///
    /// # Errors
    /// If the operating system cannot start another process of this program.
    pub(super) fn start(job: &Job, patience: Duration) -> Result<Self, Failure> {
        let start = || {
            let mut child = command(job)?.spawn()?;
            let pid = child
                .id()
                .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
            let pipes = (pid, child.stdin.take(), child.stdout.take());
            let (Some(pid), Some(stdin), Some(stdout)) = pipes else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            let steps = BufReader::new(stdout).lines();
            Ok(Self {
                name: job.client,
                child,
                pid,
                stdin,
                steps,
                patience,
            })
        };
        start().map_err(Failure::machine("starting a client process"))
    }

    /// Reads steps until one is the expected one.
    ///
    /// # Errors
    /// If the process fails, ends or falls silent before that.
    pub(super) async fn until<T>(
        &mut self,
        wanted: impl Fn(Step) -> Option<T>,
    ) -> Result<T, Failure> {
        loop {
            let step = self.step().await?;
            if let Some(found) = wanted(step) {
                return Ok(found);
            }
        }
    }

    /// Lets the process do its write. May be called while it is stopped, because the order waits in
    /// the pipe.
    ///
    /// # Errors
    /// If the process is gone.
    pub(super) async fn go(&mut self) -> Result<(), Failure> {
        let said = self.stdin.write_all(b"go\n").await;
        said.map_err(Failure::machine("talking to a client process"))
    }

    /// Stops the process and returns when it has really stopped.
    ///
    /// # Errors
    /// If the process is gone, or does not stop.
    pub(super) async fn stop(&self) -> Result<(), Failure> {
        let doing = "stopping a client process";
        // Listening begins before the signal is sent, so that its effect cannot be missed.
        let mut changes = signal(SignalKind::child()).map_err(Failure::machine(doing))?;
        self.signal(Signal::STOP).map_err(Failure::machine(doing))?;
        let stopped = async {
            while !self.is_stopped()? {
                changes.recv().await;
            }
            Ok(())
        };
        let in_time = timeout(self.patience, stopped).await;
        in_time
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(Failure::machine(doing))
    }

    /// Lets the process go on.
    ///
    /// # Errors
    /// If the process is gone.
    pub(super) fn resume(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
            .map_err(Failure::machine("resuming a client process"))
    }

    /// Ends the process with SIGKILL, stopped or not, and returns when it is gone.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(super) async fn kill(mut self) -> Result<(), Failure> {
        let killed = self.child.kill().await;
        killed.map_err(Failure::machine("killing a client process"))
    }

    /// Waits for the process to end successfully.
    ///
    /// # Errors
    /// If the process fails, or does not end in time.
    pub(super) async fn finish(mut self) -> Result<(), Failure> {
        while let Some(step) = self.next_step().await? {
            self.check(step)?;
        }
        let status = timeout(self.patience, self.child.wait()).await;
        match status.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.ended(status)),
            Err(error) => Err(Failure::machine("waiting for a client process")(error)),
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    async fn step(&mut self) -> Result<Step, Failure> {
        match self.next_step().await? {
            Some(step) => self.check(step),
            None => {
                let status = self.child.wait().await;
                Err(self.ended(status.map_err(Failure::machine("waiting for a client process"))?))
            }
        }
    }

    async fn next_step(&mut self) -> Result<Option<Step>, Failure> {
        let line = timeout(self.patience, self.steps.next_line()).await;
        let line = line.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let parsed = line.and_then(|line| {
            let step = line.map(|line| serde_json::from_str(&line)).transpose();
            step.map_err(io::Error::from)
        });
        parsed.map_err(Failure::machine("listening to a client process"))
    }

    fn check(&self, step: Step) -> Result<Step, Failure> {
        let Step::Failed {
            server_lost,
            message,
        } = step
        else {
            return Ok(step);
        };
        let text = format!("{} cannot go on: {message}", self.name.for_people());
        Err(if server_lost {
            Failure::ServerLost(text)
        } else {
            Failure::NotAsTold(text)
        })
    }

    fn ended(&self, status: ExitStatus) -> Failure {
        let text = format!("{} ended too early: {status}", self.name.for_people());
        Failure::machine("waiting for a client process")(io::Error::other(text))
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    fn is_stopped(&self) -> io::Result<bool> {
        // This asks the kernel, because SIGSTOP takes effect some time after kill() has returned.
        // NOWAIT leaves the exit status to the runtime.
        let events = WaitIdOptions::STOPPED | WaitIdOptions::EXITED;
        let look = events | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.pid), look)? {
            None => Ok(false),
            Some(change) if change.stopped() => Ok(true),
            Some(_) => Err(io::Error::other("it ended instead")),
        }
    }
}

fn command(job: &Job) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("worker")
        .arg(serde_json::to_string(job)?)
        // The client must not learn the addresses of the servers, nor the passwords in them.
        .env_remove("PALISADE_LOCK")
        .env_remove("PALISADE_STORE")
        .env_remove("PALISADE_TO")
        .env_remove("PALISADE_ADMIN_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // The client gets a process group of its own, because Ctrl-C is for the scenario, which
        // then ends its clients.
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}
