use std::{fs, io, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, test_kill_process_group},
};

use super::cgroup::Cgroup;

/// The most processes that are watched at once. A group may have more processes than this process
/// may have open files.
const WATCHED_AT_ONCE: usize = 64;

/// The processes of the command.
///
/// The system does not use the number of the group again until the leader is reaped, so a signal
/// cannot reach other processes. No process of ours reaps the leader before guardian and supervisor
/// have both forgotten the group.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    cgroup: Option<Cgroup>,
}

impl Group {
    /// The cgroup need not exist.
    pub(super) const fn new(leader: Pid, cgroup: Option<Cgroup>) -> Self {
        Self { leader, cgroup }
    }

    pub(super) const fn leader(&self) -> Pid {
        self.leader
    }

    /// Whether the leader is seen to go on: it is not stopped, and `/proc` does not hide it.
    pub(super) fn goes_on(&self) -> bool {
        matches!(State::of(self.leader), Ok(Some(state)) if !state.is_stopped)
    }

    /// Sends a signal to all processes of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process_group(self.leader, signal) {
            tracing::debug!(%error, ?signal, "no process of the command took the signal");
        }
    }

    /// Asks all processes to end, also those that are stopped.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Kills all processes.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    /// Files for some of the living processes. A file can be read when its process has ended. There
    /// are none if all processes have ended.
    ///
    /// # Errors
    /// If the processes cannot be found, for example because no further file can be opened.
    pub(super) fn living(&self) -> io::Result<Vec<OwnedFd>> {
        let mut living = Vec::new();
        for process in self.processes()? {
            match pidfd_open(process, PidfdFlags::empty()) {
                Ok(file) => living.push(file),
                Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
            if living.len() == WATCHED_AT_ONCE {
                break;
            }
        }
        Ok(living)
    }

    fn processes(&self) -> io::Result<Vec<Pid>> {
        let mut processes = match test_kill_process_group(self.leader) {
            Err(Errno::SRCH) => Vec::new(),
            // This also finds processes that have become another user's.
            _ => processes_of_group(self.leader)?,
        };
        let escaped = self.cgroup.as_ref().map(Cgroup::processes);
        for process in escaped.unwrap_or_default() {
            if State::of(process)?.is_some_and(|state| !state.is_dead) {
                processes.push(process);
            }
        }
        Ok(processes)
    }
}

/// The living processes of a group. The system has no call for that, so this reads the state of all
/// processes.
fn processes_of_group(group: Pid) -> io::Result<Vec<Pid>> {
    let group = group.as_raw_nonzero().get();
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(process) = number.and_then(Pid::from_raw) else {
            continue;
        };
        if State::of(process)?.is_some_and(|state| !state.is_dead && state.group == group) {
            processes.push(process);
        }
    }
    Ok(processes)
}

/// A part of `/proc/PID/stat`.
struct State {
    is_dead: bool,
    is_stopped: bool,
    group: i32,
}

impl State {
    /// `None` if there is no such process any more, or if this process may not see it.
    fn of(process: Pid) -> io::Result<Option<Self>> {
        let path = format!("/proc/{}/stat", process.as_raw_nonzero());
        match fs::read_to_string(path) {
            Ok(stat) => Ok(Self::parse(&stat)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
            // Another user's process, where `/proc` has the option `hidepid`.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Parses a line. The name of the program is in parentheses, and may itself contain
    /// parentheses.
    fn parse(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let threads: u32 = fields.nth(14)?.parse().ok()?;
        // The main thread may have ended before the others.
        let is_dead = matches!(state, "Z" | "X") && threads <= 1;
        Some(Self {
            is_dead,
            // Also under a tracer, such as a debugger.
            is_stopped: matches!(state, "T" | "t"),
            group,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(state: char, threads: u32) -> State {
        let stat =
            format!("42 (a) b (c) {state} 1 77 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 9");
        State::parse(&stat).unwrap()
    }

    /// Catches: a name with a parenthesis that shifts the fields.
    #[test]
    fn the_name_of_a_program_is_skipped() {
        let state = state('Z', 1);
        assert!(state.is_dead);
        assert_eq!(state.group, 77);
    }

    /// Catches: a process that goes on without its main thread, and that counts as dead.
    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        assert!(!state('Z', 2).is_dead);
        assert!(!state('S', 1).is_dead && !state('S', 1).is_stopped);
        assert!(state('T', 1).is_stopped);
        assert!(state('X', 0).is_dead);
    }
}
