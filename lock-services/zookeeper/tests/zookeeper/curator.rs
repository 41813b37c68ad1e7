//! Curator's `InterProcessMutex` and our clients exclude each other, in one queue.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use e2e::servers::{ZooKeeper, zookeeper};
use lock_core::{LeaseGuard, LockManager, ResourceName, Ttl};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use crate::{
    peer::{PATIENCE, Peer},
    world::{Namespace, nodes, until_waiting},
};

const TTL: Ttl = Ttl::secs(15);

/// The recipes with their dependencies, in Debian's folder.
const RECIPES: &str = "/usr/share/java/curator-recipes.jar:/usr/share/java/curator-framework.jar:\
                       /usr/share/java/curator-client.jar";
const COMPILER: &str = "/usr/share/java/eclipse-jdt-core.jar";

/// A process with a client of Curator.
async fn start(servers: &ZooKeeper, directory: &str, session_ms: u32) -> Peer {
    let classes = classes().await;
    let path = format!(
        "{}:{RECIPES}:/usr/share/java/slf4j-nop.jar",
        classes.display()
    );
    let mut command = Command::new("java");
    command
        .args(["-Xmx64m", "-XX:+UseSerialGC", "-cp", &path, "Contender"])
        .args([&servers.servers(), directory, &session_ms.to_string()]);
    Peer::start(&mut command).await
}

/// The folder with the compiled program.
async fn classes() -> PathBuf {
    static MADE: tokio::sync::OnceCell<PathBuf> = tokio::sync::OnceCell::const_new();
    let make = || async {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/curator/Contender.java");
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("curator");
        let compiled = Command::new("java")
            .args(["-jar", COMPILER, "-17", "-proc:none", "-cp", RECIPES, "-d"])
            .args([&classes, &source])
            .output()
            .await
            .unwrap();
        assert!(compiled.status.success(), "{compiled:?}");
        classes
    };
    MADE.get_or_init(make).await.clone()
}

async fn held(locks: LockManager) -> LeaseGuard {
    locks.acquire("r").ttl(TTL).await.unwrap()
}

#[tokio::test]
async fn curator_and_we_wait_for_each_other_in_one_line() {
    let servers = zookeeper().await;
    let namespace = Namespace::fresh(servers);
    let locks = namespace.connect().await;
    let first = held(locks.clone()).await;

    let mut curator = start(servers, &namespace.directory("r"), 10_000).await;
    assert_eq!(curator.asked("try").await["acquired"], false);
    curator.send("acquire").await;
    until_waiting(&locks, "r", 1).await;
    let behind = tokio::spawn(held(locks.clone()));
    until_waiting(&locks, "r", 2).await;
    let before = first.token();
    first.release().await.unwrap();
    assert_eq!(curator.event().await["acquired"], true);
    assert!(!behind.is_finished(), "granted while Curator holds it");
    let look = locks.acquire("r").ttl(TTL).try_acquire().await.unwrap();
    assert!(look.granted().is_none(), "granted while Curator holds it");
    assert_eq!(curator.asked("contenders").await["contenders"], 2);
    let resource = ResourceName::new("r").unwrap();
    assert!(locks.inspect(&resource).await.unwrap().holder.is_some());

    assert_eq!(curator.asked("release").await["released"], true);
    let behind = timeout(PATIENCE, behind).await.expect("its turn").unwrap();
    assert!(behind.token() > before);
}

/// Each holder makes a file that must not exist, and deletes it. A second holder would find the
/// file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curator_and_we_never_hold_at_the_same_time() {
    const TURNS: usize = 25;
    let servers = zookeeper().await;
    let namespace = Namespace::fresh(servers);
    let directory = namespace.directory("r");
    let scratch = tempfile::tempdir().unwrap();
    let mark = scratch.path().join("held");
    let mut contenders = Vec::new();
    for _ in 0..2 {
        let mut curator = start(servers, &directory, 10_000).await;
        curator
            .send(&format!("turns {TURNS} {}", mark.display()))
            .await;
        contenders.push(curator);
    }
    let ours = [namespace.connect().await, namespace.connect().await].map(|locks| {
        let mark = mark.clone();
        tokio::spawn(async move {
            let mut tokens = Vec::new();
            for _ in 0..TURNS {
                let guard = held(locks.clone()).await;
                File::create_new(&mark).expect("no other client holds it");
                tokio::time::sleep(Duration::from_millis(2)).await;
                fs::remove_file(&mark).unwrap();
                tokens.push(guard.token());
                guard.release().await.unwrap();
            }
            assert!(tokens.is_sorted());
        })
    });
    for ours in ours {
        timeout(PATIENCE, ours).await.expect("our turns").unwrap();
    }
    for mut curator in contenders {
        assert_eq!(curator.event().await, json!({ "turns": TURNS }));
    }
    let observer = namespace.observer().await;
    assert!(nodes(&observer, &directory).await.is_empty());
}

/// If a client of Curator dies, our clients wait for its session. If a client of ours stands still,
/// Curator waits for our session.
#[tokio::test]
async fn a_failed_client_costs_curator_our_session_and_us_that_of_curator() {
    // The session is long enough for a process to start on a busy machine.
    const SESSION_MS: u32 = 6_000;
    let servers = zookeeper().await;
    let namespace = Namespace::fresh(servers);
    let locks = namespace.connect().await;
    let mut worker = namespace.holder(Ttl::secs(1), SESSION_MS);
    let _held: Value = worker.event().await;
    let mut curator = start(servers, &namespace.directory("r"), SESSION_MS).await;
    curator.send("acquire").await;
    until_waiting(&locks, "r", 1).await;
    worker.pause().await;
    assert_eq!(curator.event().await["acquired"], true);

    let waiter = tokio::spawn(held(locks.clone()));
    until_waiting(&locks, "r", 1).await;
    curator.kill().await;
    let next = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
    next.release().await.unwrap();
}
