//! A run of a command, and a look at the processes that it has.

use std::{
    fs,
    path::PathBuf,
    process::{ExitStatus, Output, Stdio},
    time::Duration,
};

use e2e::{observer::until, signal, warden::workspace_binary};
use lock_core::Holder;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The variable that all processes of a run inherit, with a text that no other run has.
pub(crate) const MARK: &str = "PALISADE_TEST_RUN";

/// A folder with a lock service in a file of SQLite.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The URL of the lock service, which is a store, too.
    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.file("leases.db").display())
    }
}

/// `palisade run` with these arguments.
pub(crate) fn palisade_run(arguments: &[&str]) -> Command {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    command
        .arg("run")
        .args(arguments)
        .env_remove("PALISADE_LOCK")
        .env_remove("PALISADE_STORE")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// The output of a command, when it has ended.
pub(crate) async fn output(arguments: &[&str]) -> Output {
    palisade_run(arguments).output().await.unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A process of ours with a command. All processes of the run are found by a mark.
pub(crate) struct Marked {
    mark: String,
    pub(crate) child: Child,
}

impl Marked {
    /// Starts a process that starts a command.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mark = Holder::random().fingerprint();
        let child = command.env(MARK, &mark).spawn().unwrap();
        Self { mark, child }
    }

    /// The processes of the command.
    pub(crate) fn commands(&self) -> Vec<Pid> {
        self.processes(|program| !is_ours(program))
    }

    /// The process that the user has started.
    pub(crate) fn guardian(&self) -> Pid {
        signal::pid(self.child.id().unwrap()).unwrap()
    }

    /// The process that renews the lease.
    pub(crate) fn supervisor(&self) -> Pid {
        self.try_supervisor().expect("no supervisor is running")
    }

    pub(crate) fn try_supervisor(&self) -> Option<Pid> {
        let ours = self.processes(is_ours);
        let guardian = self.guardian();
        ours.into_iter().find(|process| *process != guardian)
    }

    /// The processes of the command, and of the shell that has started it, that run this program.
    pub(crate) fn commands_named(&self, program: &str) -> Vec<Pid> {
        self.processes(|path| path.rsplit('/').next() == Some(program))
    }

    /// The processes that renew leases, of all runs.
    pub(crate) fn supervisors(&self) -> Vec<Pid> {
        let is_supervisor = |process: &Pid| {
            let path = format!("/proc/{}/cmdline", process.as_raw_nonzero());
            fs::read(path).is_ok_and(|line| line.starts_with(b"palisade-supervisor\0"))
        };
        let ours = self.processes(is_ours);
        ours.into_iter().filter(is_supervisor).collect()
    }

    /// The processes of the run and of its command.
    pub(crate) fn all(&self) -> Vec<Pid> {
        self.processes(|_| true)
    }

    fn processes(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Pid> {
        let marked = format!("{MARK}={}", self.mark);
        let is_its = |process: &Pid| {
            let folder = PathBuf::from(format!("/proc/{}", process.as_raw_nonzero()));
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            let is_marked = environment.split(|byte| *byte == 0);
            let is_marked = is_marked.into_iter().any(|text| text == marked.as_bytes());
            let program = fs::read_link(folder.join("exe")).unwrap_or_default();
            let lives = !matches!(signal::state(*process), None | Some('Z' | 'X'));
            is_marked && lives && is_wanted(&program.to_string_lossy())
        };
        let names = fs::read_dir("/proc").unwrap().flatten();
        names
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(Pid::from_raw)
            .filter(is_its)
            .collect()
    }

    /// Waits until the command has this number of processes.
    pub(crate) async fn until_it_has(&self, processes: usize) {
        until("the command runs", async || {
            self.commands().len() == processes
        })
        .await;
    }

    /// Waits until all processes go on.
    pub(crate) async fn until_none_is_stopped(&self) {
        until("no process is stopped", async || {
            let all = self.all();
            all.into_iter()
                .all(|process| signal::state(process) != Some('T'))
        })
        .await;
    }

    /// Waits until neither the command nor the run has a process.
    pub(crate) async fn until_all_is_over(&self) {
        until("all processes have ended", async || self.all().is_empty()).await;
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(Duration::from_secs(30), self.child.wait());
        ended.await.expect("it does not end").unwrap()
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        for process in self.all() {
            let _gone = kill_process(process, Signal::KILL);
        }
    }
}

fn is_ours(program: &str) -> bool {
    let name = program.trim_end_matches(" (deleted)");
    name.ends_with("/palisade") || name.ends_with("/e2e-worker")
}
