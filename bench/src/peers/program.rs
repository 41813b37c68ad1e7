//! A program of a library: its output, its input, and its CPU time.

use std::{
    fs, io,
    process::{Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::error::BoxError;

/// A virtual machine takes some seconds to start and to warm up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program of a library. Dropping this value kills it.
pub(super) struct Program {
    child: Child,
    told: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub(super) fn start(command: Command) -> Result<Self, BoxError> {
        let mut child = tokio::process::Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (told, says) = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .ok_or("no pipes")?;
        Ok(Self {
            child,
            told,
            says: BufReader::new(says).lines(),
        })
    }

    pub(super) fn id(&self) -> Result<u32, BoxError> {
        Ok(self.child.id().ok_or("it has ended")?)
    }

    /// The next line, or `None` at the end of the output.
    pub(super) async fn line(&mut self) -> Result<Option<String>, BoxError> {
        Ok(timeout(PATIENCE, self.says.next_line()).await??)
    }

    pub(super) async fn expect(&mut self, expected: &str) -> Result<(), BoxError> {
        match self.line().await? {
            Some(line) if line == expected => Ok(()),
            other => Err(format!("said {other:?} instead of {expected:?}").into()),
        }
    }

    pub(super) async fn tell_to_go_on(&mut self) -> io::Result<()> {
        self.told.write_all(b"\n").await?;
        self.told.flush().await
    }
}

/// The CPU time of the program, and of all other processes that this process has started.
#[derive(Clone, Copy)]
pub(super) struct CpuTime {
    pub(super) client: Duration,
    pub(super) servers: Duration,
}

impl CpuTime {
    pub(super) fn now(client: u32) -> io::Result<Self> {
        let processes = all_processes()?;
        let of_client = |process: &&Process| process.id == client;
        let is_server = |process: &&Process| {
            process.id != client && descends(process, std::process::id(), &processes)
        };
        let sum = |chosen: &dyn Fn(&&Process) -> bool| {
            let ticks: u64 = processes.iter().filter(chosen).map(|one| one.ticks).sum();
            Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
        };
        Ok(Self {
            client: sum(&of_client),
            servers: sum(&is_server),
        })
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            client: self.client.saturating_sub(earlier.client),
            servers: self.servers.saturating_sub(earlier.servers),
        }
    }
}

/// The unit of the times that Linux reports to programs: `USER_HZ`, whatever its own ticks are.
const TICKS_PER_SECOND: u64 = 100;

struct Process {
    id: u32,
    parent: u32,
    ticks: u64,
}

fn all_processes() -> io::Result<Vec<Process>> {
    let entries = fs::read_dir("/proc")?.filter_map(Result::ok);
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    Ok(stats.filter_map(|stat| process(&stat)).collect())
}

/// A line of `/proc/PID/stat`, see proc(5). The time of children that have ended counts as well:
/// Postgres has a process for each session.
fn process(stat: &str) -> Option<Process> {
    let (id, rest) = stat.split_once(" (")?;
    let fields: Vec<_> = rest.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|ticks| ticks.parse::<u64>());
    Some(Process {
        id: id.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        ticks: ticks.sum::<Result<_, _>>().ok()?,
    })
}

fn descends(process: &Process, from: u32, all: &[Process]) -> bool {
    process.parent == from
        || all
            .iter()
            .find(|one| one.id == process.parent)
            .is_some_and(|parent| descends(parent, from, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_a_process_whose_name_has_a_bracket() {
        let stat = "42 (a) b) S 7 42 42 0 -1 4194560 0 0 0 0 1 2 30 400 20 0 1 0";
        let process = process(stat).unwrap();
        assert_eq!((process.id, process.parent, process.ticks), (42, 7, 433));
    }
}
