//! The recipe is that of etcd's own client. So each client keeps the other out, and both share one
//! queue.

use std::process::Stdio;

use e2e::servers::{Etcd, etcd, until};
use lock_core::{Attempt, LockManager, Ttl};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

use crate::world::{PATIENCE, manager, named, prefix};

/// `etcdctl lock NAME` while it waits and holds.
struct Other {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// `etcdctl lock` with the name of the lock that an acquisition of `resource` takes.
    fn begin(server: &Etcd, prefix: &str, resource: &str) -> Self {
        let name = format!("{prefix}/lock/{resource}");
        let mut process = server
            .command(&["lock", "--ttl=60", &name])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, output }
    }

    /// Waits until `etcdctl` prints the key of its place, because it does so when it holds.
    async fn held(&mut self) -> String {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        line.expect("it never holds").unwrap().unwrap()
    }

    /// Sends SIGINT, after which `etcdctl` gives the lock back.
    async fn interrupt(mut self) {
        let id = i32::try_from(self.process.id().unwrap()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        self.process.wait().await.unwrap();
    }
}

async fn world() -> (&'static Etcd, String, LockManager) {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    (server, prefix, locks)
}

async fn until_waiting(locks: &LockManager, resource: &str, waiters: u64) {
    let resource = named(resource);
    until("in line", || async {
        let seen = locks.inspect(&resource).await.unwrap();
        seen.waiters == Some(waiters)
    })
    .await;
}

#[tokio::test]
async fn etcdctl_keeps_us_out_and_we_are_next() {
    let (server, prefix, locks) = world().await;
    let mut other = Other::begin(server, &prefix, "a");
    let key = other.held().await;
    assert!(key.starts_with(&format!("{prefix}/lock/a/")), "{key}");
    let look = locks.try_acquire("a").await.unwrap();
    assert!(matches!(look, Attempt::Held { .. }), "{look:?}");
    // A lock whose name only begins with this name is another lock, and so is a lock below it.
    for free in ["ab", "a/b"] {
        let guard = locks.try_acquire(free).await.unwrap().granted();
        guard.expect("it is free").release().await.unwrap();
    }
    let seen = locks.inspect(&named("a")).await.unwrap();
    let holder = seen.holder.expect("it is held");
    assert!(key.ends_with(holder.fingerprint.trim_start_matches('0')));

    let waiter = {
        let locks = locks.clone();
        tokio::spawn(async move { locks.acquire("a").ttl(Ttl::secs(60)).await.unwrap() })
    };
    until_waiting(&locks, "a", 1).await;
    other.interrupt().await;
    let guard = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn we_keep_etcdctl_out_and_it_is_next_in_the_same_line() {
    let (server, prefix, locks) = world().await;
    let guard = locks.acquire("b").ttl(Ttl::secs(60)).await.unwrap();
    let mut other = Other::begin(server, &prefix, "b");
    until_waiting(&locks, "b", 1).await;
    let last = {
        let locks = locks.clone();
        tokio::spawn(async move { locks.acquire("b").ttl(Ttl::secs(60)).await.unwrap() })
    };
    until_waiting(&locks, "b", 2).await;
    let token = guard.token();
    guard.release().await.unwrap();
    other.held().await;
    let look = locks.try_acquire("b").await.unwrap();
    assert!(matches!(look, Attempt::Held { .. }), "{look:?}");
    assert!(!last.is_finished(), "it came later");
    other.interrupt().await;
    let last = timeout(PATIENCE, last).await.expect("its turn").unwrap();
    assert!(last.token() > token);
    last.release().await.unwrap();
}

/// Catches: a lock of another client that cannot be ended by force.
#[tokio::test]
async fn a_lock_of_etcdctl_can_be_ended_by_force() {
    let (server, prefix, locks) = world().await;
    let mut other = Other::begin(server, &prefix, "c");
    other.held().await;
    locks.force_release(&named("c")).await.unwrap();
    let guard = locks.try_acquire("c").await.unwrap().granted();
    guard.expect("it was ended").release().await.unwrap();
    drop(other);
}
