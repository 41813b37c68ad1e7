//! The requests of one attempt, one by one.

use std::{pin::pin, time::Duration};

use e2e::{
    proxy::{Fault, Proxy},
    servers::{until, zookeeper},
};
use futures_util::FutureExt;
use lock_core::{
    ErrorKind, FencingToken, Outcome,
    backend::{Forced, LockBackend, Reply, Request, Requests, TokioRuntime, Wait, Wake, repeat},
};
use tokio::time::timeout;

use crate::world::{Namespace, backend_at, granted, nodes, request, sequencer};

const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Request = Request::Look { queue: true };
const LAST_LOOK: Request = Request::Look { queue: false };

/// Catches: a look that is sent again takes a second place, or a last look leaves a place behind.
#[tokio::test]
async fn an_attempt_has_one_place_for_all_its_looks_and_leaves_it_with_the_last() {
    let namespace = Namespace::fresh(zookeeper().await);
    let backend = namespace.backend().await;
    let (observer, directory) = (namespace.observer().await, namespace.directory("r"));
    granted(&backend, &request("r", Wait::Never)).await;
    let waiting = request("r", Wait::Forever);
    for last in [LAST_LOOK, Request::Cancel] {
        let requests = backend.requests(&waiting);
        for _ in 0..3 {
            let reply = requests.send(LOOK).await;
            assert!(matches!(reply, Ok(Reply::Queued { .. })), "{reply:?}");
            assert_eq!(nodes(&observer, &directory).await.len(), 2);
        }
        let reply = requests.send(last).await;
        match last {
            Request::Cancel => assert!(matches!(reply, Ok(Reply::Cancelled)), "{reply:?}"),
            _ => assert!(matches!(reply, Ok(Reply::Held { .. })), "{reply:?}"),
        }
        assert_eq!(nodes(&observer, &directory).await.len(), 1, "{last:?}");
    }
}

/// Catches: an attempt whose node is gone waits for ever, or asks servers that are silent without a
/// pause, because a watch that has fired wakes it again and again.
#[tokio::test]
async fn a_watch_that_has_fired_wakes_its_attempt_once() {
    let namespace = Namespace::fresh(zookeeper().await);
    let backend = namespace.backend().await;
    let (observer, directory) = (namespace.observer().await, namespace.directory("r"));
    granted(&backend, &request("r", Wait::Never)).await;
    let before = nodes(&observer, &directory).await;
    let waiting = request("r", Wait::Forever);
    let requests = backend.requests(&waiting);
    requests.send(LOOK).await.unwrap();
    assert_eq!(requests.woken().now_or_never(), None);
    let queue = nodes(&observer, &directory).await;
    let own = queue.iter().find(|node| !before.contains(node)).unwrap();
    observer
        .delete(&format!("{directory}/{own}"), None)
        .await
        .unwrap();
    let woken = timeout(PATIENCE, requests.woken()).await;
    assert_eq!(woken.expect("it is woken"), Wake::Look);
    assert_eq!(requests.woken().now_or_never(), None, "woken twice");

    // Nothing is left of the attempt, so it begins again.
    let error = requests.send(LOOK).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
    let reply = requests.send(LOOK).await;
    assert!(matches!(reply, Ok(Reply::Queued { .. })), "{reply:?}");
}

/// Catches: an attempt that may have a node says that it has none.
#[tokio::test]
async fn a_look_whose_creation_has_no_answer_is_unknown_and_the_next_one_finds_the_node() {
    let server = zookeeper().await;
    let namespace = Namespace::fresh(server);
    let proxy = Proxy::start(&server.url()).await;
    let backend = backend_at(&proxy, &namespace.prefix).await;
    let (observer, directory) = (namespace.observer().await, namespace.directory("r"));
    // The directory exists, and the floor is known.
    let before = request("r", Wait::Never);
    let lease = granted(&backend, &before).await;
    backend.release(&lease, true).await.unwrap();

    let free = request("r", Wait::Forever);
    let requests = backend.requests(&free);
    let lost = proxy.at_request("-lock-", Fault::DropReplies);
    {
        let mut look = pin!(requests.send(LOOK));
        let is_there = until("the node is there", async || {
            !nodes(&observer, &directory).await.is_empty()
        });
        tokio::select! {
            reply = &mut look => panic!("no answer arrives, and yet: {reply:?}"),
            () = is_there => {}
        }
        proxy.inflict(Fault::Cut);
        let error = look.await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    }
    assert!(lost.has_sprung());
    let line = nodes(&observer, &directory).await;
    let reply = until_answered(&requests, LOOK).await;
    assert!(matches!(reply, Reply::Granted(_)), "{reply:?}");
    assert_eq!(nodes(&observer, &directory).await, line);
}

/// Catches: a floor that was written into the node, but whose answer was lost, is forgotten.
#[tokio::test]
async fn a_floor_whose_answer_is_lost_is_in_the_token() {
    let server = zookeeper().await;
    let namespace = Namespace::fresh(server);
    let proxy = Proxy::start(&server.url()).await;
    let backend = backend_at(&proxy, &namespace.prefix).await;
    let other = namespace.backend().await;
    let mut floor = 170_000_000_000_000;
    let mut last = granted(&backend, &request("r", Wait::Never)).await;
    backend.release(&last, true).await.unwrap();
    for fault in [Fault::DropReplies, Fault::DropRequests, Fault::Cut] {
        let mut asked = request("r", Wait::Forever);
        asked.floor = Some(FencingToken::new(floor).unwrap());
        // The note has the ttl and the difference between the floor and a transaction's number.
        let text = format!(" 300000 {}", floor / 1_000_000_000_000 - 1);
        let lost = proxy.at_request(&text, fault);
        let acquired = timeout(PATIENCE * 3, granted(&backend, &asked)).await;
        let lease = acquired.expect("a grant");
        assert!(lost.has_sprung(), "{fault:?}");
        assert!(lease.token().get() >= floor, "{fault:?}");
        assert!(lease.token() > last.token(), "{fault:?}");
        backend.release(&lease, true).await.unwrap();
        let next = request("r", Wait::Never);
        last = granted(&other, &next).await;
        assert!(last.token() > lease.token(), "{fault:?}");
        other.release(&last, true).await.unwrap();
        floor += 1_000_000_000_000;
    }
}

/// Catches: a release answers that it has ended a lease because it was sent twice. Only a release
/// with a tombstone may answer so. Otherwise the caller decides.
#[tokio::test]
async fn a_release_that_is_sent_again_is_remembered_only_with_a_tombstone() {
    use lock_core::Released::{NotHolder, Released};
    let server = zookeeper().await;
    let namespace = Namespace::fresh(server);
    let proxy = Proxy::start(&server.url()).await;
    let backend = backend_at(&proxy, &namespace.prefix).await;
    let (observer, directory) = (namespace.observer().await, namespace.directory("r"));
    for (tombstone, answer) in [(true, Released), (false, NotHolder)] {
        let held = request("r", Wait::Forever);
        let grant = match until_answered(&backend.requests(&held), LOOK).await {
            Reply::Granted(grant) => grant,
            reply => panic!("it is free, and yet: {reply:?}"),
        };
        let lease = sequencer(&held, grant.token);
        let lost = proxy.at_request("-lock-", Fault::DropReplies);
        {
            let mut release = pin!(backend.release(&lease, tombstone));
            let is_gone = until("the node is gone", async || {
                nodes(&observer, &directory).await.is_empty()
            });
            tokio::select! {
                answer = &mut release => panic!("no answer arrives, and yet: {answer:?}"),
                () = is_gone => {}
            }
            proxy.inflict(Fault::Cut);
            let error = release.await.unwrap_err();
            assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        }
        assert!(lost.has_sprung());
        let again = repeat(&TokioRuntime, || backend.release(&lease, tombstone));
        assert_eq!(again.await.unwrap(), answer);
    }
}

/// Catches: an operator gets the answer that there was no lease to end, because the first answer
/// was lost.
#[tokio::test]
async fn a_release_by_force_whose_answer_is_lost_is_a_release() {
    let server = zookeeper().await;
    let namespace = Namespace::fresh(server);
    let proxy = Proxy::start(&server.url()).await;
    let (holder, operator) = (
        namespace.backend().await,
        backend_at(&proxy, &namespace.prefix).await,
    );
    let (observer, directory) = (namespace.observer().await, namespace.directory("r"));
    let lease = granted(&holder, &request("r", Wait::Never)).await;
    let floor = format!("/{}/floors/r", namespace.prefix);
    let (_, stat) = observer.get_data(&floor).await.unwrap();
    // The request of the change can be recognised, because only it writes the directory, without
    // data.
    let touched = format!("{directory}\0\0\0\0");
    let lost = proxy.at_request(&touched, Fault::DropReplies);
    let resource = lease.resource();
    let mut force = pin!(operator.force_release(resource, lease.token()));
    let is_gone = until("the node is gone", async || {
        nodes(&observer, &directory).await.is_empty()
    });
    tokio::select! {
        answer = &mut force => panic!("no answer arrives, and yet: {answer:?}"),
        () = is_gone => {}
    }
    assert!(lost.has_sprung());
    proxy.inflict(Fault::Cut);
    let Ok(Forced::Ended { revocation }) = force.await else {
        panic!("the lease has ended");
    };
    assert!(revocation > lease.token());
    let (_, now) = observer.get_data(&floor).await.unwrap();
    assert_eq!(now.version, stat.version + 1, "ended twice");
    let next = granted(&holder, &request("r", Wait::Never)).await;
    assert!(next.token() > revocation);
    let again = operator.force_release(resource, lease.token()).await;
    assert!(matches!(again, Ok(Forced::NotHeld)), "{again:?}");
}

/// Sends a request until the client has another connection.
async fn until_answered(requests: &impl Requests, request: Request) -> Reply {
    let sent = repeat(&TokioRuntime, || requests.send(request));
    sent.await.unwrap()
}

/// Catches: an attempt that waits to be woken keeps its own next request from being sent.
#[tokio::test]
async fn a_request_is_sent_while_the_attempt_waits_to_be_woken() {
    let namespace = Namespace::fresh(zookeeper().await);
    let backend = namespace.backend().await;
    granted(&backend, &request("r", Wait::Never)).await;
    let waiting = request("r", Wait::Forever);
    let requests = backend.requests(&waiting);
    requests.send(LOOK).await.unwrap();
    let mut woken = pin!(requests.woken());
    assert_eq!(woken.as_mut().now_or_never(), None);
    let look = async {
        tokio::select! {
            biased;
            wake = woken => panic!("{wake:?}"),
            reply = requests.send(LOOK) => reply,
        }
    };
    let reply = timeout(PATIENCE, look).await.expect("it is sent");
    assert!(matches!(reply, Ok(Reply::Queued { .. })), "{reply:?}");
}
