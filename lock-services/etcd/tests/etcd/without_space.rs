//! A cluster whose space is used up: it deletes, and writes nothing.

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Etcd, until},
};
use lock_core::{
    Attempt, Error, ErrorKind, Holder, Issuer, Outcome, Released, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, Forced, LockBackend, LockBackendExt, Request, Requests,
        TokioRuntime,
    },
};

use crate::world::{backend, keys, manager, named, prefix};

const TTL: Ttl = Ttl::secs(600);
const LOOK: Request = Request::Look { queue: false };

fn attempt(resource: &str) -> AttemptRef {
    AttemptRef::new(&TokioRuntime, named(resource), Holder::random())
}

/// Acquires a lease with a holder that others may know, and returns its sequencer.
async fn held(locks: &impl LockBackend, attempt: &AttemptRef) -> Sequencer {
    let issuer = Issuer::new("etcd").unwrap();
    let request = AcquireRequest::new(attempt.clone(), TTL);
    let grant = locks.acquire(&request).await.unwrap().granted().unwrap();
    Sequencer::new(
        issuer,
        attempt.resource.clone(),
        grant.token,
        attempt.holder,
    )
}

#[track_caller]
fn assert_no_space(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("no space") && text.contains("disarm"),
        "{text}"
    );
}

/// Catches: a release that is refused because a tombstone cannot be written.
#[tokio::test]
async fn without_space_leases_end_in_each_way_and_none_begins() {
    let (server, prefix) = (Etcd::start().await, prefix());
    let locks = backend(&server.url(), &prefix).await;
    let [released, cancelled, hold, forced] =
        ["released", "cancelled", "hold", "forced"].map(attempt);
    let mut leases = Vec::new();
    for attempt in [&released, &cancelled, &hold, &forced] {
        leases.push(held(&locks, attempt).await);
    }
    server.set_without_space(true).await;

    let release = locks.release(&leases[0], true).await.unwrap();
    assert_eq!(release, Released::Released);
    locks.cancel(&cancelled).await.unwrap();
    let release = locks.release_hold(&leases[2], hold.id).await.unwrap();
    assert_eq!(release, Released::Released);
    // An operator connects now, and knows only the token of the lease.
    let operator = backend(&server.url(), &prefix).await;
    assert_eq!(operator.list().await.unwrap().len(), 1);
    let seen = operator.inspect(&forced.resource).await.unwrap();
    let token = seen.holder.unwrap().token;
    let ended = operator
        .force_release(&forced.resource, token)
        .await
        .unwrap();
    let Forced::Ended { revocation } = ended else {
        panic!("it was held: {ended:?}");
    };
    assert!(revocation > token);
    assert!(keys(&server, &format!("{prefix}/lock/")).await.is_empty());
    // Each lease is revoked, so that a late copy of its request finds no lease.
    until("the leases are revoked", async || {
        let left = server
            .ctl(&["get", "--prefix", "--keys-only", &prefix])
            .await;
        left.lines().all(|key| !key.contains("/lock/"))
            && server
                .ctl(&["lease", "list"])
                .await
                .contains("found 1 leases")
    })
    .await;

    let error = operator.cancel(&attempt("nothing")).await.unwrap_err();
    assert_no_space(&error);
    let request = AcquireRequest::new(attempt("another"), TTL);
    for locks in [&locks, &operator] {
        let look = locks.requests(&request);
        let error = look.send(LOOK).await.unwrap_err();
        assert_no_space(&error);
        assert_eq!(error.outcome(), Outcome::NotApplied);
    }
    server.set_without_space(false).await;
    for locks in [&locks, &operator] {
        let lease = held(locks, &attempt("forced")).await;
        assert!(lease.token() > revocation);
        locks.release(&lease, true).await.unwrap();
    }
}

/// Catches: an acquisition that has given up keeps its place, and so keeps all others out.
#[tokio::test]
async fn without_space_a_waiter_leaves_the_queue() {
    let (server, prefix) = (Etcd::start().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let guard = locks.acquire("r").ttl(TTL).await.unwrap();
    let waiter = {
        let locks = locks.clone();
        tokio::spawn(async move { locks.acquire("r").ttl(TTL).await })
    };
    let waiters = async |number| {
        until("so many wait", async || {
            let seen = locks.inspect(&named("r")).await.unwrap();
            seen.waiters == Some(number)
        })
        .await;
    };
    waiters(1).await;
    server.set_without_space(true).await;
    waiter.abort();
    waiters(0).await;
    guard.release().await.unwrap();
    assert!(keys(&server, &format!("{prefix}/lock/")).await.is_empty());
}

/// The node deletes the key, and its answer is lost. The next node is asked to delete a key that is
/// not there.
#[tokio::test]
async fn without_space_an_end_by_force_whose_answer_is_lost_is_reported() {
    let (server, prefix) = (Etcd::start().await, prefix());
    let proxy = Proxy::start(&server.url()).await;
    let both = format!("{},{}", proxy.url("etcd"), server.addresses()[0]);
    let holder = backend(&server.url(), &prefix).await;
    let lease = held(&holder, &attempt("r")).await;
    server.set_without_space(true).await;
    let operator = backend(&both, &prefix).await;
    let place = keys(&server, &format!("{prefix}/lock/")).await.remove(0);
    let lost = proxy.at_request(&place, Fault::DropReplies);
    let forced = operator
        .force_release(lease.resource(), lease.token())
        .await;
    assert!(lost.has_sprung());
    assert!(matches!(forced, Ok(Forced::Ended { .. })), "{forced:?}");
}

/// The first client of the cluster finds no floor, and cannot make one.
#[tokio::test]
async fn without_space_a_new_cluster_is_looked_at_and_grants_nothing() {
    let (server, prefix) = (Etcd::start().await, prefix());
    server.set_without_space(true).await;
    let locks = manager(&server.url(), &prefix).await;
    assert!(locks.inspect(&named("r")).await.unwrap().holder.is_none());
    assert_no_space(&locks.acquire("r").try_acquire().await.unwrap_err());
    server.set_without_space(false).await;
    let granted = locks.acquire("r").try_acquire().await.unwrap();
    assert!(matches!(granted, Attempt::Granted(_)), "{granted:?}");
}
