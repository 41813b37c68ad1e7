//! Who is in line when the service is retired.

use e2e::servers::{etcd, until};
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
