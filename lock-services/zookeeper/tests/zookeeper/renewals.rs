//! Renewals of one lease that are under way at the same time.

use e2e::servers::zookeeper;
use lock_core::{
    Ttl,
    backend::{LockBackend, Moment, RenewRequest, Renewed, Runtime, TokioRuntime, Wait},
};

use crate::world::{Namespace, granted, nodes, request};

const LONGER: Ttl = Ttl::secs(300);
const SHORTER: Ttl = Ttl::secs(1);

/// The next in the queue relies on the ttl that the node shows. It has to be the longest ttl on
/// which a holder relies, whichever renewal was written last.
#[tokio::test]
async fn renewals_at_once_promise_no_more_than_the_node_shows() {
    let namespace = Namespace::fresh(zookeeper().await);
    let backend = namespace.backend().await;
    let observer = namespace.observer().await;
    let directory = namespace.directory("r");
    for ttls in [[LONGER, SHORTER], [SHORTER, LONGER]] {
        let mut held = request("r", Wait::Never);
        held.ttl = SHORTER;
        let lease = granted(&backend, &held).await;
        let renewals = ttls.map(|ttl| RenewRequest::new(lease.clone(), ttl));
        // All renewals are sent before the first is answered.
        let mut latest = Moment::default();
        for renewed in backend.renew(&renewals).await {
            let Ok(Renewed::Renewed(lease)) = renewed else {
                panic!("it is held, and yet: {renewed:?}");
            };
            latest = latest.max(lease.deadline());
        }
        let node = nodes(&observer, &directory).await.pop().unwrap();
        let (note, _) = observer
            .get_data(&format!("{directory}/{node}"))
            .await
            .unwrap();
        let note = String::from_utf8(note).unwrap();
        let shown: u64 = note.split(' ').nth(1).unwrap().parse().unwrap();
        let left = latest.since(TokioRuntime.now());
        assert!(left > LONGER.get() / 2, "{left:?}");
        assert!(u128::from(shown) >= left.as_millis(), "{note} and {left:?}");
        backend.release(&lease, true).await.unwrap();
    }
}
