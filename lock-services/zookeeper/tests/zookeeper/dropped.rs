//! Acquires that are dropped without a cancel.

use e2e::servers::{until, zookeeper};
use lock_core::{
    Attempt, Released,
    backend::{AcquireRequest, LockBackend, LockBackendExt, Wait},
};
use lock_testing::DropAt;
use palisade_zookeeper::ZooKeeperBackend;

use crate::world::{Namespace, granted, nodes, request, sequencer};

/// After a drop at any await, of an acquire of a free resource or in the queue, the node is gone
/// soon, without a cancel. The next acquire does not have to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_dropped_at_any_await_leaves_no_node() {
    let namespace = Namespace::fresh(zookeeper().await);
    let backend = namespace.backend().await;
    let observer = namespace.observer().await;
    for contended in [false, true] {
        let resource = format!("r-{contended}");
        let directory = namespace.directory(&resource);
        let mut awaits = 1;
        let mut created = 0;
        loop {
            let held = request(&resource, Wait::Never);
            let lease = if contended {
                Some(granted(&backend, &held).await)
            } else {
                None
            };
            let dropped = request(&resource, Wait::Forever);
            let answer = poll_times(&backend, &dropped, awaits).await;
            if let Some(token) = answer {
                assert!(!contended, "granted while it was held");
                let lease = sequencer(&dropped, token);
                assert_eq!(
                    backend.release(&lease, true).await.unwrap(),
                    Released::Released
                );
                break;
            }
            let left = nodes(&observer, &directory).await.len();
            created = created.max(left - usize::from(contended));
            until("its node is gone", || async {
                nodes(&observer, &directory).await.len() == usize::from(contended)
            })
            .await;
            if let Some(lease) = lease {
                assert_eq!(
                    backend.release(&lease, true).await.unwrap(),
                    Released::Released
                );
            }
            if contended && awaits == 12 {
                break; // it waits in line, and nothing more happens
            }
            awaits += 1;
        }
        // A free resource may be granted before the first await.
        assert!(!contended || awaits > 1, "it awaits nothing");
        assert!(!contended || created > 0, "no node was ever left behind");
    }
}

/// Polls an acquire this many times and drops it. Returns its token, if it was granted by then.
async fn poll_times(
    backend: &ZooKeeperBackend,
    request: &AcquireRequest,
    times: usize,
) -> Option<lock_core::FencingToken> {
    let polled = DropAt::waiting(times).poll(backend.acquire(request));
    // A waiter in the queue is not polled any more, because nothing happens.
    let waits = tokio::time::timeout(std::time::Duration::from_millis(500), polled);
    match waits.await.ok().flatten()? {
        Ok(Attempt::Granted(grant)) => Some(grant.token),
        answer => panic!("it waits for ever, and yet: {answer:?}"),
    }
}
