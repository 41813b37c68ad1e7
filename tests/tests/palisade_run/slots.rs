//! A command as a job, once for each slot.

use std::{process::Output, time::Duration};

use e2e::{
    documented::script_for_run,
    observer::until,
    servers::{PostgresDatabase, postgres_database},
};
use rustix::process::{Signal, kill_process};
use sqlx::{Connection, Executor, PgConnection, Row};

use crate::support::{Marked, Place, output, palisade_run, stderr, stdout};

/// A run of the job `report` in a file of SQLite.
async fn report(url: &str, slot: &[&str], script: &str) -> Output {
    let head = ["--resource", "report", "--store", url, "--verbose"];
    let command = ["--", "sh", "-c", script];
    output(&[&head[..], slot, &command].concat()).await
}

/// Catches: a slot that is run twice, that is marked although its command has failed, or whose
/// failure is not shown.
#[tokio::test]
async fn a_slot_is_marked_after_exit_code_0_and_not_run_again() {
    let place = Place::new();
    let url = place.url();
    let slot = ["--once", "2026-11-29"];
    // The pauses get longer, so that one is seen even on a busy machine.
    let mut failures = 0;
    let pausing = loop {
        assert!(failures < 8, "no pause was seen");
        let failed = report(&url, &slot, "echo ran; exit 3").await;
        if failures > 0 && failed.status.code() == Some(75) {
            break failed;
        }
        assert_eq!(failed.status.code(), Some(3), "{}", stderr(&failed));
        assert_eq!(stdout(&failed), "ran\n");
        failures += 1;
    };
    assert_eq!(stdout(&pausing), "");
    assert!(
        stderr(&pausing).contains("has failed, and is due in"),
        "{}",
        stderr(&pausing)
    );
    let shown = jobs(&["show", "--store", &url, "report", "2026-11-29"]).await;
    assert!(
        stdout(&shown).contains(&format!("failed {failures} times: exit code 3")),
        "{}",
        stdout(&shown)
    );
    let retry = [
        "retry",
        "--store",
        &url,
        "--lock",
        &url,
        "report",
        "2026-11-29",
    ];
    assert!(jobs(&retry).await.status.success());
    let ran = report(&url, &slot, "echo $FENCING_SLOT in $FENCING_RESOURCE").await;
    assert_eq!(
        stdout(&ran),
        "2026-11-29 in job:report\n",
        "{}",
        stderr(&ran)
    );
    let done = report(&url, &slot, "echo ran").await;
    assert_eq!((done.status.code(), stdout(&done).as_str()), (Some(0), ""));
    assert!(
        stderr(&done).contains("is done already"),
        "{}",
        stderr(&done)
    );
    let other = report(&url, &["--once", "2026-11-30"], "echo ran").await;
    assert_eq!(stdout(&other), "ran\n");
}

async fn jobs(arguments: &[&str]) -> Output {
    let palisade = e2e::warden::workspace_binary("palisade").unwrap();
    let mut command = tokio::process::Command::new(palisade);
    command.arg("jobs").args(arguments).output().await.unwrap()
}

/// Catches: a message that a command was ended, although it has done all of its work.
#[tokio::test]
async fn a_slot_that_is_not_marked_says_how_its_command_ended() {
    let place = Place::new();
    let url = place.url();
    let palisade = e2e::warden::workspace_binary("palisade").unwrap();
    let taken = format!(
        "{} force-release --lock {url} --store {url} job:report --yes",
        palisade.display()
    );
    let ended = report(&url, &["--once", "2026-11-29"], &taken).await;
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(124), "{said}");
    assert!(
        said.contains("has ended with exit code 0, but the slot is NOT marked"),
        "{said}"
    );
}

/// Catches: a slot that counts as done although its runner was killed.
#[tokio::test]
async fn a_slot_whose_runner_was_killed_is_run_again() {
    let place = Place::new();
    let url = place.url();
    let arguments = [
        "--resource",
        "report",
        "--store",
        &url,
        "--once",
        "s",
        "--ttl",
        "5s",
    ];
    let mut run = Marked::spawn(palisade_run(
        &[&arguments[..], &["--", "sleep", "600"]].concat(),
    ));
    run.until_it_has(1).await;
    kill_process(run.supervisor(), Signal::KILL).unwrap();
    assert_eq!(run.ended().await.code(), Some(124));
    let again = report(&url, &["--once", "s", "--wait", "30s"], "echo ran").await;
    assert_eq!(stdout(&again), "ran\n", "{}", stderr(&again));
}

/// Catches: a slot with a failure for a wrong reason, and an exit code that does not name the
/// signal, because the signal came before the command began.
#[tokio::test]
async fn a_signal_at_any_moment_of_the_start_is_named() {
    let place = Place::new();
    let url = place.url();
    for round in 0..20 {
        let slot = round.to_string();
        let arguments = ["--resource", "report", "--store", &url, "--once", &slot];
        let command = ["--", "sleep", "600"];
        let mut run = Marked::spawn(palisade_run(&[&arguments[..], &command].concat()));
        // The launcher, which becomes the command, is the third process.
        until("the command is being started", async || {
            run.all().len() == 3
        })
        .await;
        tokio::time::sleep(Duration::from_millis(round % 5 * 3)).await;
        kill_process(run.guardian(), Signal::TERM).unwrap();
        assert_eq!(run.ended().await.code(), Some(143));
        let shown = jobs(&["show", "--store", &url, "report", &slot]).await;
        let shown = stdout(&shown);
        let expected = match shown.contains("failed") {
            true => "failed 1 times: ended by signal 15",
            false => "not done",
        };
        assert!(shown.contains(expected), "{shown}");
    }
}

/// Catches: two hosts that both run a time of a schedule.
#[tokio::test]
async fn a_schedule_gives_the_newest_time_that_is_due() {
    let place = Place::new();
    let url = place.url();
    let every = [
        "--every",
        "0 2 * * *",
        "--zone",
        "Europe/Vienna",
        "--wait",
        "30s",
    ];
    let hosts =
        futures_util::future::join_all((0..4).map(|_| report(&url, &every, "echo $FENCING_SLOT")));
    let said: String = hosts.await.iter().map(stdout).collect();
    let hour = ["T00:00:00Z\n", "T01:00:00Z\n"]
        .iter()
        .find(|hour| said.ends_with(**hour));
    assert!(hour.is_some() && said.lines().count() == 1, "{said}");
    let wrong = report(&url, &["--every", "0 2 30 2 *"], "true").await;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("never due"), "{}", stderr(&wrong));
}

/// Catches: a documented command that does not run, a psql session that the store refuses, or a
/// psql session that it accepts after the end of the lease.
#[tokio::test]
async fn psql_under_a_run_enters_by_its_environment() {
    let (database, mut owner) = bank().await;
    let url = database.url();
    let place = Place::new();
    let script = place.file("deposit.sh");
    let deposit = script_for_run("deposit.sh");
    let readme = std::fs::read_to_string(e2e::project::root().join("README.md"));
    assert!(readme.unwrap().contains(&deposit), "the README has another");
    std::fs::write(&script, deposit).unwrap();
    let script = script.to_str().unwrap();
    let arguments = [
        "--resource",
        "account:1",
        "--store",
        url,
        "--",
        "sh",
        "-e",
        script,
    ];
    for balance in [110, 120] {
        let ran = palisade_run(&arguments)
            .env("URL", for_psql(url))
            .output()
            .await
            .unwrap();
        assert!(ran.status.success(), "{}", stderr(&ran));
        assert_eq!(balance_of(&mut owner).await, balance);
    }
    // No table of a gateway is made for a run.
    let keys = "SELECT count(*)::integer FROM pg_tables WHERE tablename LIKE 'gateway%'";
    assert_eq!(owner.fetch_one(keys).await.unwrap().get::<i32, _>(0), 0);
    // The same session after another holder has had the lease.
    let leaked = ["--resource", "account:1", "--store", url, "--", "env"];
    let environment = stdout(&palisade_run(&leaked).output().await.unwrap());
    let ran = palisade_run(&arguments)
        .env("URL", for_psql(url))
        .output()
        .await
        .unwrap();
    assert!(ran.status.success());
    let mut stale = tokio::process::Command::new("sh");
    let known = environment.lines().filter_map(|line| line.split_once('='));
    stale.envs(known.filter(|(name, _)| name.starts_with("FENCING_")));
    let stale = stale
        .args(["-e", script])
        .env("URL", for_psql(url))
        .output()
        .await
        .unwrap();
    assert!(!stale.status.success());
    assert!(stderr(&stale).contains("stale"), "{}", stderr(&stale));
    assert_eq!(balance_of(&mut owner).await, 130);
}

/// A database with account 1, whose balance is 100.
async fn bank() -> (PostgresDatabase, PgConnection) {
    let database = postgres_database().await;
    let mut owner = PgConnection::connect(database.url()).await.unwrap();
    let table = "CREATE TABLE account (id integer PRIMARY KEY, balance integer);
                 INSERT INTO account VALUES (1, 100)";
    owner.execute(table).await.unwrap();
    (database, owner)
}

/// The URL without the parameters that only sqlx has.
fn for_psql(url: &str) -> &str {
    url.split('?').next().unwrap()
}

async fn balance_of(owner: &mut PgConnection) -> i32 {
    let row = owner
        .fetch_one("SELECT balance FROM account")
        .await
        .unwrap();
    row.get(0)
}

/// Catches: a result that is written twice, because the runner died between the command's commit
/// and the marker.
#[tokio::test]
async fn a_command_that_marks_its_slot_by_sql_runs_exactly_once() {
    let (database, mut owner) = bank().await;
    let url = database.url();
    let place = Place::new();
    let script = place.file("once.sh");
    std::fs::write(&script, script_for_run("interest.sh")).unwrap();
    let arguments = [
        "--resource",
        "interest",
        "--store",
        url,
        "--once",
        "2026-11",
        "--ttl",
        "5s",
        "--wait",
        "30s",
        "--",
        "sh",
        "-c",
        "sh -e \"$SCRIPT\" && touch \"$SCRIPT.done\" && $THEN",
    ];
    let mut run = palisade_run(&arguments);
    run.env("SCRIPT", &script)
        .env("URL", for_psql(url))
        .env("THEN", "sleep 600");
    let mut killed = Marked::spawn(run);
    let done = place.file("once.sh.done");
    until("it is committed", async || done.exists()).await;
    kill_process(killed.supervisor(), Signal::KILL).unwrap();
    assert_eq!(killed.ended().await.code(), Some(124));
    let mut again = palisade_run(&arguments);
    again
        .env("SCRIPT", &script)
        .env("URL", for_psql(url))
        .env("THEN", "true");
    let again = again.output().await.unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(balance_of(&mut owner).await, 101);
}
