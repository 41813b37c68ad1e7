//! A waiter that is not polled while its turn comes and goes.

use std::{pin::pin, time::Duration};

use e2e::{
    proxy::{Fault, Proxy},
    servers::{etcd, until},
};
use lock_core::{
    ErrorKind, FencingToken, Holder, Issuer, Released, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, LockBackend, LockBackendExt, TokioRuntime, Upkeep, Wait,
    },
};
use palisade_etcd::EtcdBackend;
use tokio::time::timeout;

use crate::world::{PATIENCE, backend, keys, named, prefix};

const LONG: Ttl = Ttl::secs(600);

fn request(ttl: Ttl, wait: Wait) -> AcquireRequest {
    let mut request = AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, named("r"), Holder::random()),
        ttl,
    );
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
    assert_eq!(
        backend.release(lease, true).await.unwrap(),
        Released::Released
    );
}

/// The waiter learns that it is the first only after its lease has run out, and another client has
/// the resource.
#[tokio::test]
async fn a_waiter_that_hears_too_late_that_it_is_the_first_is_not_granted_anything() {
    let (server, prefix) = (etcd().await, prefix());
    let proxy = Proxy::start(&server.url()).await;
    let ours = backend(&proxy.url("etcd"), &prefix).await;
    let lease = held(&ours, LONG).await;
    let first = keys(server, &format!("{prefix}/lock/")).await.remove(0);
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
