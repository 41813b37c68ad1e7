//! A program in another language that deposits into an account under a lock.

use std::{path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// Debian's own interpreter, which has the drivers of databases.
pub const DEBIANS_PYTHON: &str = "/usr/bin/python3";

/// A program in Python that prints lines of JSON, and goes on at each line of its input. When this
/// value is dropped, the program is killed.
#[derive(Debug)]
pub struct Depositor {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Depositor {
    /// Starts the program at a database, in Debian's Python.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(program: &Path, database: &str, amount: &str) -> Self {
        Self::start_in(Path::new(DEBIANS_PYTHON), program, database, amount)
    }

    /// Starts the program in another interpreter.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_in(python: &Path, program: &Path, database: &str, amount: &str) -> Self {
        let mut child = Command::new(python)
            .arg(program)
            .args([database, amount])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            unreachable!("both are piped");
        };
        Self {
            input,
            output: BufReader::new(output).lines(),
            child,
        }
    }

    /// Its next line.
    ///
    /// # Panics
    /// If the program ends, or prints something else than JSON, or nothing for 30 s.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn says(&mut self) -> Value {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("it says nothing"));
        let line = line.unwrap_or_else(|error| panic!("{error}"));
        let line = line.unwrap_or_else(|| panic!("it has ended"));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Sends the program a line.
    ///
    /// # Panics
    /// If it has ended.
    ///
    /// # Cancel safety
    /// A part of the line may have been written.
    pub async fn go_on(&mut self) {
        let written = self.input.write_all(b"\n").await;
        written.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Sends the program a signal.
    ///
    /// # Panics
    /// If it has ended.
    pub fn signal(&self, signal: Signal) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let Some(id) = id.and_then(Pid::from_raw) else {
            panic!("it has ended");
        };
        kill_process(id, signal).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Whether the program ends with success.
    ///
    /// # Panics
    /// If the system loses it.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn ends_well(&mut self) -> bool {
        let ended = self.child.wait().await;
        ended.unwrap_or_else(|error| panic!("{error}")).success()
    }
}
