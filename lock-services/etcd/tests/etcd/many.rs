//! More places than fit into one answer of etcd.

use std::{fmt::Write as _, process::Stdio};

use e2e::servers::{Etcd, etcd, until};
use lock_core::{
    Holder, Ttl,
    backend::{AcquireRequest, AttemptRef, LockBackend, LockBackendExt, TokioRuntime, Wait},
};
use tokio::{io::AsyncWriteExt, time::timeout};

use crate::world::{PATIENCE, backend, keys, named, prefix};

/// The number of places that etcd takes in one step.
const AT_ONCE: usize = 128;
/// The places of this many steps are larger than the 4 MiB that an answer may have.
const STEPS: usize = 5;
const LENGTH: usize = 7_000;

fn request(wait: Wait) -> AcquireRequest {
    let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
    let mut request = AcquireRequest::new(attempt, Ttl::secs(600));
    request.wait = wait;
    request
}

/// Puts places of other clients into queues: half of them into this queue, and each of the others
/// into a queue of its own.
async fn crowd(server: &Etcd, prefix: &str, line: &str) {
    let value = "x".repeat(LENGTH);
    for step in 0..STEPS {
        let mut puts = String::new();
        for number in 0..AT_ONCE / 2 {
            let name = format!("{step}x{number}");
            writeln!(puts, "put {prefix}/lock/{line}/{name} {value}").unwrap();
            writeln!(puts, "put {prefix}/lock/{name}/{name} {value}").unwrap();
        }
        let mut txn = server.command(&["txn"]);
        let txn = txn.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut txn = txn.spawn().unwrap();
        let mut stdin = txn.stdin.take().unwrap();
        // The transaction has no comparisons, these changes, and no changes for the other case.
        let text = format!("\n{puts}\n\n");
        stdin.write_all(text.as_bytes()).await.unwrap();
        drop(stdin);
        let output = txn.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

/// The holder is the oldest of its queue, and the waiter the youngest, whatever the order of their
/// names among the other names.
#[tokio::test]
async fn a_service_with_more_places_than_fit_into_an_answer_is_listed() {
    let (server, prefix) = (etcd().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    let holder = request(Wait::Never);
    let token = backend.acquire(&holder).await.unwrap();
    let token = token.granted().unwrap().token;
    crowd(server, &prefix, "r").await;
    let others = STEPS * AT_ONCE;
    let waiter = request(Wait::Forever);
    let operate = async {
        let line = format!("{prefix}/lock/");
        until("in line", || async {
            keys(server, &line).await.len() == others + 2
        })
        .await;
        let listed = backend.list().await.unwrap();
        assert_eq!(listed.len(), others / 2 + 1);
        let line = listed.iter().find(|line| line.resource == named("r"));
        let line = &line.expect("it is held").inspection;
        assert_eq!(line.holder.as_ref().map(|view| view.token), Some(token));
        let waiters = u64::try_from(others / 2 + 1).unwrap();
        assert_eq!(line.waiters, Some(waiters));
        for step in 0..STEPS {
            let others = format!("{prefix}/lock/r/{step}x");
            server.ctl(&["del", "--prefix", &others]).await;
        }
        backend.cancel(&holder.attempt).await.unwrap();
    };
    let acquire = timeout(PATIENCE, backend.acquire(&waiter));
    let (answer, ()) = tokio::join!(acquire, operate);
    let granted = answer.expect("its turn").unwrap().granted().unwrap();
    assert!(granted.token > token);
}
