//! Nodes whose creation had no answer, and nodes that belong to another session than they seem to.

use std::time::Duration;

use e2e::{
    proxy::{Fault, Proxy},
    servers::zookeeper,
};
use lock_core::{Released, Ttl};
use tokio::time::timeout;
use zookeeper_client::{Acls, CreateMode};

use crate::world::{Namespace, nodes, until_waiting};

/// A ttl that is far longer than a test. A second node would wait for the first for this time.
const LONG: Ttl = Ttl::secs(300);
const TTL: Ttl = Ttl::secs(15);
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the servers have got the creation or not, there is one node, and a grant.
#[tokio::test]
async fn a_creation_without_an_answer_makes_one_node() {
    let server = zookeeper().await;
    let namespace = Namespace::fresh(server);
    let proxy = Proxy::start(&server.url()).await;
    let url = format!("{}?session_ms=600000", proxy.url("zookeeper"));
    let locks = palisade::connect(&url)
        .prefix(&namespace.prefix)
        .await
        .unwrap();
    let guard = locks.acquire("r").ttl(LONG).await.unwrap();
    let mut last = guard.token();
    guard.release().await.unwrap();
    let observer = namespace.observer().await;
    let directory = namespace.directory("r");
    for fault in [Fault::DropReplies, Fault::DropRequests, Fault::Cut] {
        let lost = proxy.at_request("-lock-", fault);
        let acquired = timeout(PATIENCE, locks.acquire("r").ttl(LONG)).await;
        let guard = acquired.expect("a grant").unwrap();
        assert!(lost.has_sprung());
        assert!(guard.token() > last, "{fault:?}");
        last = guard.token();
        assert_eq!(nodes(&observer, &directory).await.len(), 1, "{fault:?}");
        guard.release().await.unwrap();
        assert!(nodes(&observer, &directory).await.is_empty(), "{fault:?}");
    }
}

/// A node with the name of our node that belongs to another session is not ours, wherever it comes
/// from.
#[tokio::test]
async fn a_node_of_another_session_is_never_taken_for_a_grant() {
    let namespace = Namespace::fresh(zookeeper().await);
    let locks = namespace.connect().await;
    let observer = namespace.observer().await;
    let held = locks.acquire("r").ttl(TTL).await.unwrap();
    let waiting = tokio::spawn({
        let locks = locks.clone();
        async move { locks.acquire("r").ttl(TTL).await.unwrap() }
    });
    until_waiting(&locks, "r", 1).await;
    let directory = namespace.directory("r");
    let mut line = nodes(&observer, &directory).await;
    line.sort_by_key(|node| node.rsplit('-').next().map(str::to_owned));
    let path = format!("{directory}/{}", line[1]);
    observer.delete(&path, None).await.unwrap();
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    observer.create(&path, b"", &ephemeral).await.unwrap();

    held.release().await.unwrap();
    let guard = timeout(PATIENCE, waiting).await.expect("its turn").unwrap();
    // The attempt has a node of its own now, and has deleted the node that had its name.
    let now = nodes(&observer, &directory).await;
    assert!(!now.contains(&line[1]), "granted with the node of another");
    assert_eq!(now.len(), 1, "{now:?}");
    assert_eq!(guard.release().await.unwrap(), Released::Released);
}
