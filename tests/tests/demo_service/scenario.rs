//! The story: without fencing an update is lost, with fencing none is.

use std::{fs, path::Path};

use e2e::{
    process::Process,
    servers::{postgres_database, redis},
};
use serde_json::Value;

/// Short leases, so that the tests are short, but long enough for two busy cores.
const TIMES: [&str; 4] = ["--ttl", "800ms", "--pause", "1s"];

/// Plays the scenario, and returns the one object that may be on stdout.
pub(crate) async fn played(arguments: &[&str]) -> Value {
    let arguments = ["scenario", "--json"].iter().chain(&TIMES).chain(arguments);
    let mut scenario = Process::spawn("palisade-demo", arguments);
    let told = scenario.event().await;
    assert_eq!(scenario.line().await, None, "more than one line on stdout");
    let status = scenario.finish().await;
    assert_eq!(status.code(), Some(0), "{told}");
    told
}

/// The unfenced control loses an update in every run, and fencing in none.
#[track_caller]
pub(crate) fn assert_as_told(told: &Value, runs: u64) {
    assert_eq!(told["as_told"], true, "{told}");
    let (unfenced, fenced) = (&told["unfenced"], &told["fenced"]);
    for (name, control, with_fencing) in [
        ("runs", runs, runs),
        ("lost_updates", runs, 0),
        ("stale_writes_accepted", runs, 0),
        ("stale_writes_rejected", 0, runs),
    ] {
        assert_eq!(unfenced[name], control, "{name}: {told}");
        assert_eq!(fenced[name], with_fencing, "{name}: {told}");
    }
    // Two leases in the first act; three in the second, whose late client starts afresh. On a slow
    // machine others are lost before they are used, and taken again.
    for (act, leases) in [(unfenced, 2), (fenced, 3)] {
        let tokens: Vec<u64> = serde_json::from_value(act["tokens"].clone()).unwrap();
        assert!(tokens.len() as u64 >= leases * runs, "{told}");
        assert!(runs > 1 || tokens.is_sorted_by(|a, b| a < b), "{told}");
    }
}

/// Catches: a server that the scenario cannot use, and a lock service that is not the one which was
/// named. The store is the lock service, too, if nothing else is named.
#[tokio::test]
async fn on_every_store_it_goes_as_told() {
    let (alone, beside) = (postgres_database().await, postgres_database().await);
    let embedded = async { (played(&[]).await, 1, "memory", "sqlite") };
    let one_database = async {
        let told = played(&["--store", alone.url()]).await;
        (told, 1, "postgres", "postgres")
    };
    let two_runs = async {
        let servers = ["--lock", redis().await.url(), "--store", beside.url()];
        let told = played(&[&servers[..], &["--runs", "2"]].concat()).await;
        (told, 2, "redis", "postgres")
    };
    let (one, two, three) = tokio::join!(embedded, one_database, two_runs);
    for (told, runs, lock, store) in [one, two, three] {
        assert_as_told(&told, runs);
        assert_eq!(
            (&told["lock"], &told["store"]),
            (&lock.into(), &store.into())
        );
    }
}

/// Without fencing the job is done twice.
/// Catches: a job whose progress is not saved in the transaction of its effect.
#[tokio::test]
async fn a_job_is_done_once_with_fencing() {
    let database = postgres_database().await;
    for servers in [&[][..], &["--store", database.url()]] {
        let told = played(&[&["--story", "jobs"][..], servers].concat()).await;
        assert_eq!(told["as_told"], true, "{told}");
        for (act, wrong) in [("unfenced", 1), ("fenced", 0)] {
            assert_eq!(told[act]["lost_updates"], wrong, "{told}");
            assert_eq!(told[act]["stale_writes_accepted"], wrong, "{told}");
            assert_eq!(told[act]["stale_writes_rejected"], 1 - wrong, "{told}");
        }
    }
}

/// Catches: a record without one of its events, or a picture that loads something.
#[tokio::test]
async fn the_record_and_the_picture_stand_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (record, picture) = (
        folder.path().join("record.json"),
        folder.path().join("pause.svg"),
    );
    let files = ["--record", text(&record), "--svg", text(&picture)];
    let told = played(&files).await;
    assert_eq!(told["picture"], text(&picture));

    let record: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    let events = record["events"].as_array().unwrap();
    let times: Vec<_> = events
        .iter()
        .map(|event| event["at_ms"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted());
    for kind in [
        "paused",
        "lease_expired",
        "resumed",
        "write_refused",
        "verdict",
    ] {
        assert!(
            events.iter().any(|event| event["kind"] == kind),
            "no {kind}"
        );
    }

    let picture = fs::read_to_string(&picture).unwrap();
    assert!(
        !picture.contains("href=") && !picture.contains("src="),
        "it loads something"
    );
    assert!(picture.contains("role=\"img\"") && picture.contains("prefers-color-scheme: dark"));
    for words in [
        "Act 1: without fencing",
        "Act 2: with fencing",
        "stopped by SIGSTOP",
    ] {
        assert!(picture.contains(words), "{words}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
