//! Stopping, continuing and killing child processes.
//!
//! Only the parent may do this: only it can know that a pid still belongs to its child.

use std::{fs, io};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Stops a child with SIGSTOP and returns when all its threads stand still.
///
/// # Errors
/// If there is no such child, or if it ended instead of stopping.
pub fn pause(child: Pid) -> io::Result<()> {
    kill_process(child, Signal::STOP)?;
    // The kernel reports a stop once the last thread has stopped; /proc only shows the first
    // thread. NOWAIT leaves the exit status to the owner of the child.
    let events = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(child), events)? {
        Some(status) if status.stopped() => Ok(()),
        _ => Err(io::Error::other(
            "the process ended before it could be stopped",
        )),
    }
}

/// Lets a stopped child go on with SIGCONT.
///
/// # Errors
/// If there is no such child.
pub fn resume(child: Pid) -> io::Result<()> {
    Ok(kill_process(child, Signal::CONT)?)
}

/// The children of a child of ours.
///
/// Their pids remain valid as long as their parent is stopped.
///
/// # Errors
/// If processes cannot be listed.
pub fn children(of: Pid) -> io::Result<Vec<Pid>> {
    let is_child = |process: &Pid| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid())).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let parent: i32 = fields.split(' ').nth(1)?.parse().ok()?;
        Some(parent == of.as_raw_pid())
    };
    let processes = fs::read_dir("/proc")?.flatten();
    Ok(processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter(|process| is_child(process) == Some(true))
        .collect())
}

/// The pid of a child, in the form that the functions above take.
///
/// # Errors
/// If `id` is not a pid.
pub fn pid(id: u32) -> io::Result<Pid> {
    i32::try_from(id)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other(format!("{id} is no process id")))
}

/// The present state of a process, according to Linux's /proc: `T` stopped, `Z` dead but not yet
/// waited for; `None` if there is no such process.
pub fn state(process: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid())).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?; // the name before it may hold anything
    fields.chars().next()
}
