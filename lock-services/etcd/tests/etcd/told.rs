//! Whoever is told by the release of the one before it, in the same process, does not look.

use std::{pin::pin, time::Duration};

use e2e::{
    proxy::{Fault, Proxy},
    servers::{etcd, until},
};
use lock_core::{
    AcquireRequest, AttemptRef, ErrorKind, FencingToken, Holder, Issuer, LockBackend, Released,
    Sequencer, Ttl, Upkeep, Wait,
};
use palisade_etcd::EtcdBackend;
use tokio::time::timeout;

use crate::world::{PATIENCE, backend, keys, named, prefix};

const LONG: Ttl = Ttl::secs(600);

fn request(ttl: Ttl, wait: Wait) -> AcquireRequest {
    let mut request = AcquireRequest::new(AttemptRef::new(named("r"), Holder::random()), ttl);
    (request.wait, request.upkeep) = (wait, Upkeep::Watchdog);
    request
}

fn sequencer(request: &AcquireRequest, token: FencingToken) -> Sequencer {
    let issuer = Issuer::new("test").unwrap();
    Sequencer::new(issuer, named("r"), token, request.attempt.holder)
}

async fn held(backend: &EtcdBackend, ttl: Ttl) -> Sequencer {
    let holder = request(ttl, Wait::Never);
    let answer = backend.acquire(&holder).await.unwrap();
    sequencer(&holder, answer.granted().expect("it is free").token)
}

async fn release(backend: &EtcdBackend, lease: &Sequencer) {
    assert_eq!(backend.release(lease).await.unwrap(), Released::Released);
}

/// Its looks are held up. The control is a waiter behind a lease of another process, which looks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_next_in_the_same_process_is_granted_without_a_look() {
    let (server, prefix) = (etcd().await, prefix());
    let other = backend(&server.url(), &prefix).await;
    let line = format!("{prefix}/lock/");
    for in_one_process in [true, false] {
        let proxy = Proxy::start(&server.url()).await;
        let ours = backend(&proxy.url("etcd"), &prefix).await;
        let before = if in_one_process { &ours } else { &other };
        let lease = held(before, LONG).await;
        let waiter = request(LONG, Wait::Forever);
        let first = keys(server, &line).await.remove(0);
        // By then it can be told.
        let watched = proxy.at_request(&first, Fault::Nothing);
        let hand_over = async {
            until("it watches", || async { watched.has_sprung() }).await;
            // The end of the line, one entry, the youngest first.
            let look = proxy.at_request("/lock/r0\u{18}\u{1}(\u{2}", Fault::HoldRequests);
            release(before, &lease).await;
            if !in_one_process {
                until("it looks", async || look.has_sprung()).await;
                proxy.let_go();
            }
            look
        };
        let (answer, look) = tokio::join!(timeout(PATIENCE, ours.acquire(&waiter)), hand_over);
        let token = answer.expect("its turn").unwrap().granted().unwrap().token;
        assert_eq!(look.has_sprung(), !in_one_process);
        assert!(token > lease.token());
        release(&other, &sequencer(&waiter, token)).await;
    }
}

/// It is told, and reads that only after its lease has run out, and somebody else has the resource.
#[tokio::test]
async fn a_waiter_that_reads_too_late_that_it_is_the_first_is_not_granted_anything() {
    let (server, prefix) = (etcd().await, prefix());
    let proxy = Proxy::start(&server.url()).await;
    let ours = backend(&proxy.url("etcd"), &prefix).await;
    let lease = held(&ours, LONG).await;
    let first = keys(server, &format!("{prefix}/lock/")).await.remove(0);
    // By then it can be told.
    let watched = proxy.at_request(&first, Fault::Nothing);
    let waiter = request(Ttl::secs(2), Wait::Forever);
    let mut waits = pin!(ours.acquire(&waiter));
    tokio::select! {
        answer = &mut waits => panic!("it is held, and yet: {answer:?}"),
        () = until("it watches", || async { watched.has_sprung() }) => {}
    }
    release(&ours, &lease).await;
    let rival = request(LONG, Wait::Forever);
    let answer = timeout(PATIENCE, ours.acquire(&rival)).await;
    let rival = sequencer(
        &rival,
        answer.expect("its turn").unwrap().granted().unwrap().token,
    );
    let answer = timeout(Duration::from_secs(10), waits).await;
    let error = answer.expect("it has ended").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Released, "{error}");
    release(&ours, &rival).await;
}
