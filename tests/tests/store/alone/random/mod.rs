//! Many workers over a few resources. Each believes that it has the lease, while many faults
//! happen: isolation levels of all kinds, pauses that outlast the idle timeout, sessions that an
//! administrator ends, and a crash of the server.
//!
//! Only the fence keeps the workers apart: a lock service that gives the next token to every caller
//! is worse than any real lock service.

mod journal;
mod nemesis;
mod worker;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use e2e::{history::History, servers::DatabaseServer};
use fenced_store::{FencedStore, PgFencedStore};
use sqlx::{
    Executor,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::task::JoinSet;

use self::{
    journal::{Journal, Seen},
    worker::{Check, Tally},
};

const WORKERS: usize = 14;
const RESOURCES: usize = 3;

/// The state that all workers of a run share.
struct Run {
    seed: u64,
    check: Check,
    store: PgFencedStore,
    /// The last token that was given out, by resource.
    tokens: [AtomicU64; RESOURCES],
    journal: Journal,
    history: History,
    over: AtomicBool,
}

/// Lets the workers work for this time, with a crash in the middle.
async fn run(check: Check, length: Duration, seed: u64) -> (Arc<Run>, Tally, Seen) {
    println!("{check:?}, seed {seed}");
    let server = DatabaseServer::postgres(&["track_commit_timestamp=on"]).await;
    let options: PgConnectOptions = server.url().parse().unwrap();
    let pool = PgPoolOptions::new().max_connections(20);
    let pool = pool
        .connect_with(options.application_name(nemesis::PREY))
        .await
        .unwrap();
    let store = FencedStore::new(pool);
    store.migrate().await.unwrap();
    store.pool().execute(journal::TABLE).await.unwrap();
    let run = Arc::new(Run {
        seed,
        check,
        store,
        tokens: Default::default(),
        journal: Journal::default(),
        history: History::default(),
        over: AtomicBool::new(false),
    });
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        workers.spawn(worker::work(Arc::clone(&run), number));
    }
    nemesis::torment(&run, &server, length).await;
    let tally = workers.join_all().await.into_iter().sum();
    let seen = run.journal.check(run.store.pool()).await;
    (run, tally, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_random_faults_no_stale_write_is_stored_and_no_read_misses_one() {
    let seed = rand::random();
    let (fenced, tally, seen) = run(Check::Fenced, Duration::from_secs(5), seed).await;
    println!("{tally:?} {seen:?}");
    assert_eq!((seen.out_of_order, seen.missed_reads), (0, 0));
    assert_eq!(seen.lost, 0, "a commit that was answered is gone");
    fenced.history.assert_sound();
    // There were many faults, and work was done meanwhile.
    assert!(seen.writes > 50, "{seen:?}");
    assert!(tally.refused > 0 && tally.clashed > 0, "{tally:?}");
    assert!(tally.terminated > 0 && tally.disconnected > 0, "{tally:?}");

    let (_, tally, seen) = run(Check::PlainSelect, Duration::from_secs(3), seed).await;
    println!("{tally:?} {seen:?}");
    assert!(seen.out_of_order > 0, "the control lets none through");
    assert!(seen.missed_reads > 0, "the control misses none");
}
