//! Faults of our processes while there is no command: it has not begun, or has ended.

use std::{fs, process::Stdio, time::Duration};

use e2e::observer::until;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{io::AsyncReadExt, process::Command};

use crate::support::{Marked, Place, output, palisade_run, stderr};

/// A run that waits for a lease, and the run that has the lease.
async fn waiting(place: &Place) -> (Marked, Marked) {
    let url = place.url();
    let head = ["--resource", "r", "--lock", &url];
    let first = Marked::spawn(palisade_run(&[&head[..], &["--", "sleep", "60"]].concat()));
    first.until_it_has(1).await;
    let mut waits = palisade_run(&[&head[..], &["--wait", "60s", "--", "true"]].concat());
    waits.stderr(Stdio::piped());
    let waits = Marked::spawn(waits);
    let locks = palisade::connect(&*url).await.unwrap();
    until("it waits", async || {
        locks.inspect("r").await.unwrap().waiters > Some(0)
    })
    .await;
    (first, waits)
}

/// A run whose command ends with its input.
async fn reading(place: &Place) -> Marked {
    let url = place.url();
    let script = "read line; exit 3";
    let mut run = palisade_run(&["--resource", "r", "--lock", &url, "--", "sh", "-c", script]);
    run.stdin(Stdio::piped()).stderr(Stdio::piped());
    let run = Marked::spawn(run);
    run.until_it_has(1).await;
    run
}

/// Has the command of such a run end.
async fn end_the_command(run: &mut Marked) {
    drop(run.child.stdin.take());
    until("the command has ended", async || run.commands().is_empty()).await;
}

/// A run whose command has just ended, and whose lock service does not answer for a moment.
async fn releasing(place: &Place) -> (Marked, SqliteConnection) {
    let mut run = reading(place).await;
    let file = SqliteConnectOptions::new().filename(place.file("leases.db"));
    let mut file = file.connect().await.unwrap();
    sqlx::query("BEGIN EXCLUSIVE")
        .execute(&mut file)
        .await
        .unwrap();
    end_the_command(&mut run).await;
    (run, file)
}

async fn errors(run: &mut Marked) -> String {
    let mut errors = String::new();
    let pipe = run.child.stderr.take();
    pipe.unwrap().read_to_string(&mut errors).await.unwrap();
    errors
}

/// The processor time that a process has used, in ticks of 10 ms.
fn ticks(process: Pid) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ');
    fields
        .skip(11)
        .take(2)
        .map(|n| n.parse::<u64>().unwrap())
        .sum()
}

/// Whether a process has not yet taken a signal. A second one would be lost then.
fn is_pending(process: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero()));
    let status = status.unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = u64::from_str_radix(pending.unwrap().trim(), 16).unwrap();
    pending & (1 << (signal.as_raw() - 1)) != 0
}

/// Catches: a mail from cron that names no reason.
#[tokio::test]
async fn a_supervisor_that_is_killed_while_it_waits_is_missed() {
    let place = Place::new();
    let (_first, mut waits) = waiting(&place).await;
    kill_process(waits.supervisor(), Signal::KILL).unwrap();
    assert_eq!(waits.ended().await.code(), Some(125));
    let errors = errors(&mut waits).await;
    assert!(
        errors.contains("signal 9") && errors.contains("not started"),
        "{errors}"
    );
}

/// Catches: an exit code for a fault of the machine after the user's Ctrl-C.
#[tokio::test]
async fn a_second_ctrl_c_ends_a_wait_whose_supervisor_does_not_answer() {
    let place = Place::new();
    let (_first, mut waits) = waiting(&place).await;
    kill_process(waits.supervisor(), Signal::STOP).unwrap();
    kill_process(waits.guardian(), Signal::INT).unwrap();
    until("the first one is noticed", async || {
        !is_pending(waits.guardian(), Signal::INT)
    })
    .await;
    kill_process(waits.guardian(), Signal::INT).unwrap();
    assert_eq!(waits.ended().await.code(), Some(130));
}

/// Catches: a guardian that polls a closed socket all the time, or that gives up a lease because of
/// a Ctrl-C that was meant for the command.
#[tokio::test]
async fn while_the_lease_is_released_the_guardian_waits_quietly() {
    let place = Place::new();
    let (mut run, file) = releasing(&place).await;
    let before = ticks(run.guardian());
    kill_process(run.guardian(), Signal::INT).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let used = ticks(run.guardian()) - before;
    file.close().await.unwrap();
    assert_eq!(
        run.ended().await.code(),
        Some(3),
        "{}",
        errors(&mut run).await
    );
    assert!(used < 30, "{used} ticks in a second");
}

/// Catches: a lease that others wait for, without a message about it.
#[tokio::test]
async fn a_supervisor_that_is_killed_before_the_release_is_missed() {
    let place = Place::new();
    let (mut run, _file) = releasing(&place).await;
    kill_process(run.supervisor(), Signal::KILL).unwrap();
    assert_eq!(run.ended().await.code(), Some(125));
    let errors = errors(&mut run).await;
    assert!(
        errors.contains("signal 9") && errors.contains("have to wait"),
        "{errors}"
    );
}

/// Catches: a message that the command was ended by us, although it has ended by itself and only
/// the report of that is missing.
#[tokio::test]
async fn a_supervisor_that_is_killed_before_its_report_is_missed() {
    let place = Place::new();
    let mut run = reading(&place).await;
    let supervisor = run.supervisor();
    kill_process(supervisor, Signal::STOP).unwrap();
    end_the_command(&mut run).await;
    kill_process(supervisor, Signal::KILL).unwrap();
    let code = run.ended().await.code();
    let errors = errors(&mut run).await;
    assert_eq!(code, Some(125), "{errors}");
    assert!(errors.contains("have to wait"), "{errors}");
}

/// Catches: a service that keeps its lease when it is stopped, with a SIGTERM for each process.
#[tokio::test]
async fn sigterm_for_all_processes_leaves_the_command_its_time_and_frees_the_lease() {
    let place = Place::new();
    let url = place.url();
    let script = "trap 'sleep 0.5; exit 4' TERM; sleep 60 & wait";
    let head = ["--resource", "r", "--lock", &url];
    let command = ["--", "sh", "-c", script];
    let mut run = Marked::spawn(palisade_run(&[&head[..], &command].concat()));
    run.until_it_has(2).await;
    let [guardian, supervisor] = [run.guardian(), run.supervisor()];
    for process in [supervisor, guardian] {
        kill_process(process, Signal::TERM).unwrap();
    }
    assert_eq!(run.ended().await.code(), Some(4));
    let next = output(&[&head[..], &["--", "true"]].concat()).await;
    assert_eq!(next.status.code(), Some(0), "{}", stderr(&next));
}

/// Catches: a run that fails, and forgets its command, if its parent process ignores SIGCHLD.
#[tokio::test]
async fn a_parent_that_ignores_sigchld_changes_nothing() {
    let place = Place::new();
    let mut ignoring = Command::new("perl");
    ignoring.args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV"]);
    ignoring.arg(e2e::warden::workspace_binary("palisade").unwrap());
    ignoring.args(["run", "--resource", "r", "--lock", &place.url()]);
    let ended = ignoring.args(["--", "sh", "-c", "exit 3"]).output().await;
    let ended = ended.unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
}
