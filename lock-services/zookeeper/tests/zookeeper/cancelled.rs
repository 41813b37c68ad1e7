//! Attempts that are cancelled while their acquire goes on, and attempts that another process
//! cancels.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use e2e::servers::zookeeper;
use lock_core::{
    Attempt, Error, ErrorKind, Holder, Released, ResourceName,
    backend::{AcquireRequest, AttemptRef, Grant, LockBackend, LockBackendExt, TokioRuntime, Wait},
};
use lock_testing::DropAt;
use tokio::time::timeout;
use zookeeper_client::Client;

use crate::world::{Namespace, granted, nodes, request, sequencer};

const PATIENCE: Duration = Duration::from_secs(10);

type Answer = Result<Attempt<Grant>, Error>;

/// The obstacle that an acquire meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Free,
    Held,
    /// The lock directory was deleted. It has to be made, and the node has to be created again.
    Deleted,
}

/// After a cancel at any await, the acquire soon returns the error that it has ended, and leaves no
/// node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_goes_on_after_its_cancel_leaves_no_node() {
    let namespace = Namespace::fresh(zookeeper().await);
    let backend = namespace.backend().await;
    let observer = namespace.observer().await;
    for way in [Way::Free, Way::Held, Way::Deleted] {
        let resource = format!("r-{way:?}");
        let directory = namespace.directory(&resource);
        let is_held = usize::from(way == Way::Held);
        let mut awaits = 0;
        loop {
            awaits += 1;
            let lease = granted(&backend, &request(&resource, Wait::Never)).await;
            if way != Way::Held {
                assert_eq!(
                    backend.release(&lease, true).await.unwrap(),
                    Released::Released
                );
            }
            if way == Way::Deleted {
                observer.delete(&directory, None).await.unwrap();
            }
            let cancelled = request(&resource, Wait::Forever);
            let mut acquire = pin!(backend.acquire(&cancelled));
            if let Some(answer) = polled(&mut acquire, awaits).await {
                release(&backend, &cancelled, answer).await;
                break;
            }
            backend.cancel(&cancelled.attempt).await.unwrap();
            let answer = timeout(PATIENCE, acquire).await.expect("an answer");
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::Released, "{way:?}");
            e2e::servers::until("its node is gone", || async {
                nodes(&observer, &directory).await.len() == is_held
            })
            .await;
            if way == Way::Held {
                assert_eq!(
                    backend.release(&lease, true).await.unwrap(),
                    Released::Released
                );
                if awaits == 12 {
                    break; // it waits in line, and nothing more happens
                }
            }
        }
        println!("{way:?}: {awaits} awaits");
        assert!(awaits > 1, "it awaits nothing");
    }
}

/// Polls an acquire this many times. Returns its answer, if it has one by then.
async fn polled(
    acquire: &mut Pin<&mut (impl Future<Output = Answer> + ?Sized)>,
    times: usize,
) -> Option<Answer> {
    let polled = DropAt::waiting(times).poll(acquire);
    // A waiter in the queue is not polled any more, because nothing happens.
    let waits = timeout(Duration::from_millis(500), polled);
    waits.await.ok().flatten()
}

async fn release(backend: &impl LockBackend, request: &AcquireRequest, answer: Answer) {
    let Ok(Attempt::Granted(grant)) = answer else {
        panic!("it waits for ever, and yet: {answer:?}");
    };
    let lease = sequencer(request, grant.token);
    assert_eq!(
        backend.release(&lease, true).await.unwrap(),
        Released::Released
    );
}

/// Only the process of an attempt can end it, so the answer that it has ended would be wrong.
#[tokio::test]
async fn a_cancel_from_another_process_is_refused_and_not_ignored() {
    let namespace = Namespace::fresh(zookeeper().await);
    let (ours, other) = (namespace.backend().await, namespace.backend().await);
    let observer = namespace.observer().await;
    let held = request("r", Wait::Never);
    let lease = granted(&ours, &held).await;
    let waiting = request("r", Wait::Forever);
    let mut waits = pin!(ours.acquire(&waiting));
    let is_in_line = async {
        until_in_line(&observer, &namespace.directory("r"), 2).await;
    };
    tokio::select! {
        answer = &mut waits => panic!("it is held, and yet: {answer:?}"),
        () = is_in_line => {}
    }

    // A repeated request gets the same answer.
    for attempt in [&held.attempt, &waiting.attempt].repeat(2) {
        let error = other.cancel(attempt).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("another process"), "{error}");
    }
    // An attempt that was never begun has ended.
    let resource = ResourceName::new("r").unwrap();
    let nobodys = AttemptRef::new(&TokioRuntime, resource, Holder::random());
    other.cancel(&nobodys).await.unwrap();
    let directory = namespace.directory("r");
    assert_eq!(nodes(&observer, &directory).await.len(), 2);

    ours.cancel(&waiting.attempt).await.unwrap();
    let answer = timeout(PATIENCE, waits).await.expect("an answer");
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Released);
    // After the cancel by its own process, other processes get the same answer.
    other.cancel(&waiting.attempt).await.unwrap();
    assert_eq!(
        ours.release(&lease, true).await.unwrap(),
        Released::Released
    );
    other.cancel(&held.attempt).await.unwrap();
}

async fn until_in_line(observer: &Client, directory: &str, many: usize) {
    e2e::servers::until("they stand in line", || async {
        nodes(observer, directory).await.len() == many
    })
    .await;
}

/// An attempt finds a lease that is given up before the attempt gets it, while the acquisition goes
/// on. This is tried at every await, with a lease that existed before and with a lease for which
/// both attempts waited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_is_granted_although_the_lease_that_it_found_was_given_up() {
    let namespace = Namespace::fresh(zookeeper().await);
    let backend = namespace.backend().await;
    let observer = namespace.observer().await;
    for waited in [false, true] {
        let resource = format!("r-{waited}");
        let directory = namespace.directory(&resource);
        let mut awaits = 0;
        loop {
            awaits += 1;
            let early = request(&resource, Wait::Forever);
            let mut late = early.clone();
            late.attempt = AttemptRef::new(
                &TokioRuntime,
                early.attempt.resource.clone(),
                early.attempt.holder,
            );
            let mut second = pin!(backend.acquire(&late));
            let found = if waited {
                let rival = granted(&backend, &request(&resource, Wait::Never)).await;
                let mut first = pin!(backend.acquire(&early));
                tokio::select! {
                    answer = &mut first => panic!("it is held, and yet: {answer:?}"),
                    () = until_in_line(&observer, &directory, 2) => {}
                }
                tokio::select! {
                    answer = &mut second => panic!("it is held, and yet: {answer:?}"),
                    () = until_in_line(&observer, &directory, 3) => {}
                }
                assert_eq!(
                    backend.release(&rival, true).await.unwrap(),
                    Released::Released
                );
                let answer = timeout(PATIENCE, first).await.expect("its turn");
                answer.unwrap().granted().expect("it waits").token
            } else {
                granted(&backend, &early).await.token()
            };
            if let Some(answer) = polled(&mut second, awaits).await {
                let token = answer.unwrap().granted().expect("it waits").token;
                assert_eq!(token, found);
                let lease = sequencer(&late, token);
                assert_eq!(
                    backend.release(&lease, true).await.unwrap(),
                    Released::Released
                );
                break;
            }
            backend.cancel(&early.attempt).await.unwrap();
            let answer = timeout(PATIENCE, second).await.expect("its turn");
            let token = answer.unwrap().granted().expect("it waits").token;
            assert!(
                token > found,
                "{waited}, await {awaits}: {token} after {found}"
            );
            let lease = sequencer(&late, token);
            assert_eq!(
                backend.release(&lease, true).await.unwrap(),
                Released::Released
            );
        }
        println!("waited: {waited}: {awaits} awaits");
        assert!(awaits > 1, "it awaits nothing");
    }
}
