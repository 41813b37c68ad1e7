//! Who is in line when the service is retired.

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Etcd, etcd, until},
};
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, ErrorKind, FencingToken, Holder, Issuer, LockBackend,
    Released, Sequencer, Ttl, Wait,
};
use tokio::time::timeout;

use crate::world::{PATIENCE, backend, keys, named, prefix};

const TTL: Ttl = Ttl::secs(600);

fn request(wait: Wait) -> AcquireRequest {
    let mut request = AcquireRequest::new(AttemptRef::new(named("r"), Holder::random()), TTL);
    request.wait = wait;
    request
}

fn sequencer(request: &AcquireRequest, token: FencingToken) -> Sequencer {
    let issuer = Issuer::new("test").unwrap();
    Sequencer::new(issuer, named("r"), token, request.attempt.holder)
}

/// Whoever was first holds it, and is told so again whatever has become of the service. Whoever
/// stood behind it has a token from before, which nobody may be told of any more.
#[tokio::test]
async fn waiters_are_bound_by_what_became_of_the_service_and_the_holder_is_not() {
    let (server, prefix) = (etcd().await, prefix());
    let (one, other) = (
        backend(&server.url(), &prefix).await,
        backend(&server.url(), &prefix).await,
    );
    for reinstated in [false, true] {
        let holder = request(Wait::Never);
        let token = one.acquire(&holder).await.unwrap().granted().unwrap().token;
        let waiters = [(); 2].map(|()| request(Wait::Forever));
        let line = format!("{prefix}/lock/");
        let told = async |request| {
            let answer = timeout(PATIENCE, one.acquire(request)).await;
            let answer = answer.expect("a waiter that nobody tells");
            if let Ok(Attempt::Granted(grant)) = &answer {
                let lease = sequencer(request, grant.token);
                assert_eq!(one.release(&lease).await.unwrap(), Released::Released);
            }
            answer
        };
        let operate = async {
            until("in line", || async { keys(server, &line).await.len() == 3 }).await;
            let last = other.retire().await.unwrap().last.unwrap();
            let floor = FencingToken::new(last.get() + 1_000_000).unwrap();
            if reinstated {
                other.reinstate(floor).await.unwrap();
            }
            let again = other.acquire(&holder).await.unwrap().granted().unwrap();
            assert_eq!(again.token, token, "it holds the resource");
            let released = one.release(&sequencer(&holder, token)).await.unwrap();
            assert_eq!(released, Released::Released);
            floor
        };
        let (first, second, floor) = tokio::join!(told(&waiters[0]), told(&waiters[1]), operate);
        for answer in [first, second] {
            match answer {
                Ok(Attempt::Granted(grant)) if reinstated => assert!(grant.token >= floor),
                Err(error) if !reinstated => assert_eq!(error.kind(), ErrorKind::Retired),
                other => panic!("reinstated: {reinstated}, told {other:?}"),
            }
        }
        assert_eq!(keys(server, &line).await, Vec::<String>::new());
        other.reinstate(floor).await.unwrap();
    }
}

/// A service that is lifted without having been retired: the same for those who wait.
#[tokio::test]
async fn waiters_of_a_service_that_was_lifted_get_tokens_above_the_floor() {
    let (server, prefix) = (etcd().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    let (holder, waiter) = (request(Wait::Never), request(Wait::Forever));
    let token = backend
        .acquire(&holder)
        .await
        .unwrap()
        .granted()
        .unwrap()
        .token;
    let line = format!("{prefix}/lock/");
    let floor = FencingToken::new(token.get() + 1_000_000).unwrap();
    let lift = async {
        until("in line", || async { keys(server, &line).await.len() == 2 }).await;
        backend.reinstate(floor).await.unwrap();
        backend.release(&sequencer(&holder, token)).await.unwrap();
    };
    let (answer, ()) = tokio::join!(timeout(PATIENCE, backend.acquire(&waiter)), lift);
    let grant = answer.expect("its turn").unwrap().granted().unwrap();
    assert!(grant.token >= floor, "{}", grant.token);
    backend
        .release(&sequencer(&waiter, grant.token))
        .await
        .unwrap();
}

/// It stays retired, though it was so already when it was retired the second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_request_to_reinstate_an_etcd_that_was_retired_twice_does_nothing() {
    let (server, prefix) = (etcd().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    let retired = backend.retire().await.unwrap();
    let proxy = Proxy::start(&server.url()).await;
    let behind = crate::world::backend(&proxy.url("etcd"), &prefix).await;
    // The one request that has the key of the floor with a value behind it.
    let held = proxy.at_request("/floor\u{12}", Fault::HoldRequests);
    let floor = FencingToken::new(retired.last.unwrap().get() + 1_000_000).unwrap();
    let slow = timeout(PATIENCE, behind.reinstate(floor)).await;
    let error = slow.expect("it gives up").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let connection = held.connection().expect("it was held");
    drop(behind);
    let again = backend.retire().await.unwrap();
    assert!(again.last >= retired.last);
    proxy.let_go();
    until("it has arrived", async || proxy.has_ended(connection)).await;
    assert!(backend.standing().await.unwrap().retired);
    let refused = backend.acquire(&request(Wait::Never)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Retired, "{refused}");
}

/// Whoever polls it, each time as somebody else, as managers do.
#[tokio::test]
async fn of_who_polls_a_retired_service_nothing_stays_there() {
    let (server, prefix) = (Etcd::start().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    backend.retire().await.unwrap();
    let leases = async || server.ctl(&["lease", "list"]).await.lines().count();
    let before = leases().await;
    for _ in 0..5 {
        let refused = backend.acquire(&request(Wait::Never)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Retired, "{refused}");
    }
    assert_eq!(leases().await, before);
}
