use std::{fs, os::fd::OwnedFd};

use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, test_kill_process_group,
};

use super::cgroup::Cgroup;

/// The processes of the command.
///
/// The number of the group stays theirs until the leader is reaped, so a signal cannot reach
/// others. No process of ours reaps the leader before both have forgotten the group.
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

    /// Sends a signal to all processes of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process_group(self.leader, signal) {
            tracing::debug!(%error, ?signal, "no process of the command took the signal");
        }
    }

    /// Asks all of them to end, also those that are stopped.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Ends all of them.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    /// A file for each process that lives, which can be read when it has ended. None if all have
    /// ended.
    pub(super) fn living(&self) -> Vec<OwnedFd> {
        let open = |process| pidfd_open(process, PidfdFlags::empty()).ok();
        self.processes().into_iter().filter_map(open).collect()
    }

    fn processes(&self) -> Vec<Pid> {
        let mut processes = match test_kill_process_group(self.leader) {
            Ok(()) => processes_of_group(self.leader),
            Err(_) => Vec::new(),
        };
        if let Some(cgroup) = &self.cgroup {
            let escaped = cgroup.processes();
            processes.extend(escaped.into_iter().filter(|process| !is_dead(*process)));
        }
        processes
    }
}

/// The processes of a group that live. There is no call for it, so all processes are looked at.
fn processes_of_group(group: Pid) -> Vec<Pid> {
    let Ok(all) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let processes = names.filter_map(|name| Pid::from_raw(name.parse().ok()?));
    let is_its = |process: &Pid| {
        let state = State::of(*process);
        state.is_some_and(|state| !state.is_dead && state.group == group.as_raw_nonzero().get())
    };
    processes.filter(is_its).collect()
}

fn is_dead(process: Pid) -> bool {
    State::of(process).is_none_or(|state| state.is_dead)
}

/// A part of `/proc/PID/stat`.
struct State {
    is_dead: bool,
    group: i32,
}

impl State {
    fn of(process: Pid) -> Option<Self> {
        let path = format!("/proc/{}/stat", process.as_raw_nonzero());
        Self::parse(&fs::read_to_string(path).ok()?)
    }

    /// The name of the program is in parentheses, and may have such in it.
    fn parse(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let threads: u32 = fields.nth(14)?.parse().ok()?;
        // The main thread may have ended before the others.
        let is_dead = matches!(state, "Z" | "X") && threads <= 1;
        Some(Self { is_dead, group })
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

    /// Catches: a process that goes on without its main thread, and counts as dead.
    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        assert!(!state('Z', 2).is_dead);
        assert!(!state('S', 1).is_dead);
        assert!(state('X', 0).is_dead);
    }
}
