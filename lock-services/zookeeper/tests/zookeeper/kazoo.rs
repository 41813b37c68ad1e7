//! Real clients of kazoo and our clients exclude each other, in one queue.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use e2e::{
    python::environment,
    servers::{ZooKeeper, zookeeper},
};
use lock_core::{
    LeaseGuard, LockManager, ResourceName, Ttl,
    backend::{Runtime, TokioRuntime},
};
use serde_json::Value;
use tokio::{process::Command, time::timeout};

use crate::{
    peer::{PATIENCE, Peer},
    world::{Namespace, nodes, until_waiting},
};

const TTL: Ttl = Ttl::secs(15);

/// The pattern that makes kazoo recognise our nodes.
const OURS: &str = "-lock-";

/// A process with a kazoo client.
async fn start(servers: &ZooKeeper, directory: &str, patterns: &[&str]) -> Peer {
    let mut command = Command::new(python().await);
    command
        .arg(folder().join("contender.py"))
        .args([&servers.servers(), directory, "2"])
        .args(patterns)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Peer::start(&mut command).await
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kazoo")
}

/// The interpreter that has kazoo.
async fn python() -> PathBuf {
    static MADE: tokio::sync::OnceCell<PathBuf> = tokio::sync::OnceCell::const_new();
    let made = MADE.get_or_init(|| async {
        let make = || {
            let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
            environment(scratch, &folder().join("requirements.txt"))
        };
        tokio::task::spawn_blocking(make).await.unwrap()
    });
    made.await.join("bin").join("python")
}

async fn held(locks: LockManager) -> LeaseGuard {
    locks.acquire("r").ttl(TTL).await.unwrap()
}

#[tokio::test]
async fn kazoo_and_we_wait_for_each_other_in_one_line() {
    let servers = zookeeper().await;
    let namespace = Namespace::fresh(servers);
    let locks = namespace.connect().await;
    let directory = namespace.directory("r");
    let first = held(locks.clone()).await;

    let mut kazoo = start(servers, &directory, &[OURS]).await;
    assert_eq!(kazoo.asked("try").await["acquired"], false);
    kazoo.send("acquire").await;
    until_waiting(&locks, "r", 1).await;
    let behind = tokio::spawn(held(locks.clone()));
    until_waiting(&locks, "r", 2).await;
    let before = first.token();
    first.release().await.unwrap();
    assert_eq!(kazoo.event().await["acquired"], true);
    assert!(!behind.is_finished(), "granted while kazoo holds it");
    let look = locks.acquire("r").ttl(TTL).try_acquire().await.unwrap();
    assert!(look.granted().is_none(), "granted while kazoo holds it");

    // Kazoo reads the data of our nodes, and our clients read the data of its nodes.
    let contenders = kazoo.asked("contenders").await;
    let contenders = contenders["contenders"].as_array().unwrap();
    assert_eq!(contenders[0], "kazoo");
    assert!(contenders[1].as_str().unwrap().starts_with("palisade/1 "));
    let resource = ResourceName::new("r").unwrap();
    let holder = locks.inspect(&resource).await.unwrap().holder.unwrap();
    assert_eq!(holder.metadata.unwrap().as_str(), "kazoo");

    assert_eq!(kazoo.asked("release").await["released"], true);
    let behind = timeout(PATIENCE, behind).await.expect("its turn").unwrap();
    assert!(behind.token() > before);
}

/// Without the pattern kazoo does not know our nodes. The tests would show this result if names
/// made no difference.
#[tokio::test]
async fn kazoo_that_is_not_told_of_our_names_is_the_control() {
    let servers = zookeeper().await;
    let namespace = Namespace::fresh(servers);
    let locks = namespace.connect().await;
    let _held = held(locks).await;
    let mut kazoo = start(servers, &namespace.directory("r"), &[]).await;
    assert_eq!(kazoo.asked("try").await["acquired"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kazoo_and_we_never_hold_at_the_same_time() {
    const TURNS: usize = 25;
    let servers = zookeeper().await;
    let namespace = Namespace::fresh(servers);
    let directory = namespace.directory("r");
    let mut contenders = Vec::new();
    for _ in 0..2 {
        let mut kazoo = start(servers, &directory, &[OURS]).await;
        kazoo.send(&format!("turns {TURNS}")).await;
        contenders.push(kazoo);
    }
    let ours: Vec<_> = [namespace.connect().await, namespace.connect().await]
        .into_iter()
        .map(|locks| {
            tokio::spawn(async move {
                let mut turns = Vec::new();
                for _ in 0..TURNS {
                    let guard = held(locks.clone()).await;
                    let began = TokioRuntime.now();
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    turns.push((began, TokioRuntime.now(), Some(guard.token())));
                    guard.release().await.unwrap();
                }
                turns
            })
        })
        .collect();
    let mut turns = Vec::new();
    for ours in ours {
        turns.extend(timeout(PATIENCE, ours).await.expect("our turns").unwrap());
    }
    for mut kazoo in contenders {
        for _ in 0..TURNS {
            let turn = kazoo.event().await;
            let moment = |name: &str| {
                let nanos = turn[name].as_u64().unwrap();
                lock_core::backend::Moment::from_origin(Duration::from_nanos(nanos))
            };
            turns.push((moment("began_ns"), moment("ended_ns"), None));
        }
    }
    turns.sort_by_key(|(began, ..)| *began);
    assert_eq!(turns.len(), 4 * TURNS);
    for pair in turns.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "at the same time: {pair:?}");
    }
    let changes = turns
        .windows(2)
        .filter(|pair| pair[0].2.is_some() != pair[1].2.is_some());
    assert!(changes.count() > 2, "they did not meet");
    assert!(turns.iter().filter_map(|(.., token)| *token).is_sorted());
    let observer = namespace.observer().await;
    assert!(nodes(&observer, &directory).await.is_empty());
}

/// Kazoo does not know our ttl, so it waits for the session.
#[tokio::test]
async fn a_failed_client_costs_the_other_library_a_session() {
    let servers = zookeeper().await;
    let namespace = Namespace::fresh(servers);
    let locks = namespace.connect().await;
    let mut kazoo = start(servers, &namespace.directory("r"), &[OURS]).await;
    let mut worker = namespace.holder(Ttl::secs(2), 4_000);
    let _held: Value = worker.event().await;
    kazoo.send("acquire").await;
    until_waiting(&locks, "r", 1).await;
    worker.pause().await;
    assert_eq!(kazoo.event().await["acquired"], true);

    let waiter = tokio::spawn(held(locks.clone()));
    until_waiting(&locks, "r", 1).await;
    kazoo.kill().await;
    let next = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
    next.release().await.unwrap();
}
