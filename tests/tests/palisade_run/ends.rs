//! One of our two processes is stopped or killed, in the middle of a command that does not end by
//! itself.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use e2e::{observer::until, warden::workspace_binary};
use futures_util::future::join_all;
use lock_core::{ErrorKind, Ttl};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use crate::support::{Marked, Place, palisade_run};

/// A twentieth of it is the time in which the guardian has to kill a command on a busy host.
pub(crate) const TTL: &str = "4s";

/// How long a process that was stopped in the middle of a write may keep the file of SQLite. It is
/// killed when its lease is over.
const STOPPED_WRITER: Duration = Duration::from_secs(10);

/// Scripts, and the number of their processes.
const COMMANDS: [(&str, &str, usize); 4] = [
    ("runs for ten minutes", "exec sleep 600", 1),
    (
        "forks",
        "sleep 600 & sleep 600 & (sleep 600 & wait) & wait",
        5,
    ),
    (
        "ignores SIGTERM",
        "trap '' TERM; sleep 600 & while true; do wait; done",
        2,
    ),
    (
        "has children that outlive it",
        "trap 'exit 0' TERM; (trap '' TERM; sleep 600 & while true; do wait; done) & wait",
        3,
    ),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Guardian,
    Supervisor,
}

/// Takes the lease when it is free, and returns the processes of the command that live then.
pub(crate) async fn alive_at_the_next_grant(run: &Marked, url: &str, resource: &str) -> Vec<Pid> {
    let locks = palisade::connect(url)
        .ttl(Ttl::secs(10))
        .response_timeout(STOPPED_WRITER)
        .await
        .unwrap();
    let next = locks.acquire(resource).wait(Duration::from_secs(30)).await;
    let alive = run.commands();
    next.unwrap().release().await.unwrap();
    alive
}

/// The control: a process that no other process watches is stopped, and its command goes on.
pub(crate) async fn the_control_lives_on() {
    let place = Place::new();
    let url = place.url();
    let mut alone = Command::new(workspace_binary("e2e-worker").unwrap());
    alone.args(["alone", "--lock", &url, "--resource", "r"]);
    alone.args(["--ttl-ms", "6000", "--", "sleep", "600"]);
    let alone = Marked::spawn(alone);
    alone.until_it_has(1).await;
    let locks = palisade::connect(&*url).await.unwrap();
    loop {
        kill_process(alone.guardian(), Signal::STOP).unwrap();
        match locks.acquire("another").await {
            Ok(_) => break,
            // It is in the middle of a write, and no process would kill it.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        kill_process(alone.guardian(), Signal::CONT).unwrap();
    }
    let alive = alive_at_the_next_grant(&alone, &url, "r").await;
    assert_eq!(alive.len(), 1, "the control ended its command");
}

/// Catches: a command that goes on while another process holds the lease. The control, one
/// process alone, lets it go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_dead_before_the_next_holder_begins() {
    let faults = [Victim::Guardian, Victim::Supervisor]
        .into_iter()
        .flat_map(|victim| [(victim, Signal::STOP), (victim, Signal::KILL)]);
    let cases = faults.flat_map(|fault| COMMANDS.map(|command| (fault, command)));
    // Each case has a file of its own, because a process that is stopped may keep its file.
    let watched = cases.map(async |((victim, signal), (does, script, processes))| {
        let place = Place::new();
        let url = place.url();
        let arguments = ["--resource", "r", "--lock", &url, "--ttl", TTL];
        let command = ["--", "sh", "-c", script];
        let mut run = Marked::spawn(palisade_run(&[&arguments[..], &command].concat()));
        run.until_it_has(processes).await;
        let guardian = run.guardian();
        let process = match victim {
            Victim::Guardian => guardian,
            Victim::Supervisor => run.supervisor(),
        };
        kill_process(process, signal).unwrap();
        let alive = alive_at_the_next_grant(&run, &url, "r").await;
        assert!(alive.is_empty(), "{victim:?} {signal:?}, and {does}");
        if victim == Victim::Guardian && signal == Signal::STOP {
            kill_process(guardian, Signal::CONT).unwrap();
        }
        let code = run.ended().await.code();
        let was_killed = victim == Victim::Guardian && signal == Signal::KILL;
        let expected = (!was_killed).then_some(124);
        assert_eq!(code, expected, "{victim:?} {signal:?}, and {does}");
    });
    tokio::join!(join_all(watched), the_control_lives_on());
}

/// Catches: a command that one of our processes does not know of, because the other one died while
/// the command was started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_that_dies_at_any_moment_of_the_start_leaves_no_command() {
    let place = Place::new();
    let url = place.url();
    for round in 0..30 {
        let resource = format!("r{round}");
        let arguments = ["--resource", &resource, "--lock", &url, "--ttl", TTL];
        let command = ["--", "sleep", "600"];
        let mut run = Marked::spawn(palisade_run(&[&arguments[..], &command].concat()));
        // The start of a command takes about 100 ms.
        tokio::time::sleep(Duration::from_millis(round * 8)).await;
        let victim = match round % 2 {
            0 => run.try_supervisor(),
            _ => Some(run.guardian()),
        };
        if let Some(victim) = victim {
            kill_process(victim, Signal::KILL).unwrap();
            let code = run.ended().await.code();
            assert!(matches!(code, None | Some(124 | 125)), "{code:?}");
            run.until_all_is_over().await;
        }
    }
}

/// Catches: a daemon that goes on after the lease of the command that has started it.
#[tokio::test]
async fn a_process_that_leaves_the_group_ends_where_there_is_a_cgroup() {
    let place = Place::new();
    let url = place.url();
    let arguments = ["--resource", "r", "--lock", &url, "--ttl", TTL];
    let command = ["--", "sh", "-c", "setsid sleep 600 & sleep 600 & wait"];
    let mut run = Marked::spawn(palisade_run(&[&arguments[..], &command].concat()));
    until("both sleep", async || {
        run.commands_named("sleep").len() == 2
    })
    .await;
    let cgroup = cgroup(&run);
    kill_process(run.supervisor(), Signal::KILL).unwrap();
    assert_eq!(run.ended().await.code(), Some(124));
    // Elsewhere this is not promised, and the page of `palisade run` says so.
    assert_eq!(run.commands().len(), usize::from(cgroup.is_none()));
}

/// The cgroup of the command, if the run could make one.
fn cgroup(run: &Marked) -> Option<PathBuf> {
    let process = run.commands()[0].as_raw_nonzero();
    let own = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let made = format!("-{}", run.guardian().as_raw_nonzero());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let folder = PathBuf::from(mount.split(' ').nth(4)?).join(own);
    own.ends_with(&made).then_some(folder)
}

/// Catches: a process that goes on, and a cgroup that stays, because the command has put it into a
/// cgroup inside of its own.
#[tokio::test]
async fn a_process_in_an_inner_cgroup_ends_with_its_command() {
    let place = Place::new();
    let url = place.url();
    let script = "setsid sleep 600 & read line; exit 3";
    let mut run = palisade_run(&["--resource", "r", "--lock", &url, "--", "sh", "-c", script]);
    run.stdin(Stdio::piped());
    let mut run = Marked::spawn(run);
    until("it sleeps", async || run.commands_named("sleep").len() == 1).await;
    let cgroup = cgroup(&run);
    if let Some(cgroup) = &cgroup {
        let inner = cgroup.join("inner");
        fs::create_dir(&inner).unwrap();
        let sleeps = run.commands_named("sleep")[0].as_raw_nonzero();
        fs::write(inner.join("cgroup.procs"), sleeps.to_string()).unwrap();
    }
    drop(run.child.stdin.take());
    assert_eq!(run.ended().await.code(), Some(3));
    assert_eq!(run.commands().len(), usize::from(cgroup.is_none()));
    assert!(cgroup.is_none_or(|cgroup| !cgroup.exists()));
}
