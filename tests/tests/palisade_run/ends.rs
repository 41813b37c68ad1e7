//! One of our two processes is stopped or killed, in the middle of a command that does not end by
//! itself.

use std::time::Duration;

use e2e::warden::workspace_binary;
use futures_util::future::join_all;
use lock_core::{ErrorKind, Ttl};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use crate::support::{Marked, Place, palisade_run};

const TTL: &str = "2s";

/// How long a process that was stopped in the middle of a write may keep the file of SQLite. It is
/// killed when its lease is over.
const STOPPED_WRITER: Duration = Duration::from_secs(10);

/// Scripts, and the number of their processes.
const COMMANDS: [(&str, &str, usize); 4] = [
    ("runs for a minute", "exec sleep 60", 1),
    ("forks", "sleep 60 & sleep 61 & (sleep 62 & wait) & wait", 5),
    (
        "ignores SIGTERM",
        "trap '' TERM; sleep 60 & while true; do wait; done",
        2,
    ),
    (
        "has children that outlive it",
        "trap 'exit 0' TERM; (trap '' TERM; sleep 60 & while true; do wait; done) & wait",
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
    alone.args(["--ttl-ms", "2000", "--", "sleep", "60"]);
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
    for millis in (0..80).step_by(4) {
        let resource = format!("r{millis}");
        let arguments = ["--resource", &resource, "--lock", &url, "--ttl", TTL];
        let command = ["--", "sleep", "60"];
        let mut run = Marked::spawn(palisade_run(&[&arguments[..], &command].concat()));
        tokio::time::sleep(Duration::from_millis(millis)).await;
        let victim = match millis % 8 {
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
    let command = ["--", "sh", "-c", "setsid sleep 60 & sleep 61 & wait"];
    let mut run = Marked::spawn(palisade_run(&[&arguments[..], &command].concat()));
    run.until_it_has(3).await;
    let guardian = run.guardian().as_raw_nonzero();
    let cgroup = format!("-{guardian}");
    let own = std::fs::read_to_string(format!(
        "/proc/{}/cgroup",
        run.commands()[0].as_raw_nonzero()
    ));
    let has_cgroup = own.unwrap().contains(&cgroup);
    kill_process(run.supervisor(), Signal::KILL).unwrap();
    assert_eq!(run.ended().await.code(), Some(124));
    // On other systems this is not promised, and the page of `palisade run` says so.
    assert_eq!(run.commands().len(), usize::from(!has_cgroup));
}
