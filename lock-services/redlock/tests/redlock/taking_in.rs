//! When a node is taken in, its old keys are deleted, but no keys of its new incarnation.

use e2e::servers::{Redis, RedlockServers};
use futures_util::future::join_all;
use lock_testing::DropAt;
use palisade_redlock::{NodeState, RedlockNodes};

use crate::world::{SHORT, connect, cycle, heal, in_service, provisioned, states};

const MARKER: &str = "palisade:redlock:node";
const OLD: &str = "palisade:redlock:ended:old";
/// More than one page of deletions.
const MANY: usize = 1200;

/// Nodes with short leases, because healing takes as long as the longest lease.
async fn short() -> RedlockServers {
    in_service(RedlockServers::start(3).await, SHORT).await
}

async fn fill_with_old(node: &Redis) {
    let keys: Vec<String> = (0..MANY).map(|number| format!("{OLD}{number}")).collect();
    let pairs = keys.iter().flat_map(|key| [key.as_str(), "x"]);
    let set: Vec<&str> = ["MSET"].into_iter().chain(pairs).collect();
    drop::<String>(node.command(&set).await);
}

async fn old_left(node: &Redis) -> usize {
    let keys: Vec<String> = node.command(&["KEYS", &format!("{OLD}*")]).await;
    keys.len()
}

/// Polls a healing up to this await and drops it. Returns whether the node was taken in by then.
async fn polled(nodes: &RedlockNodes, address: &str, number: usize) -> bool {
    let mut taken_in = false;
    let healing = nodes.heal(address, |_| taken_in = true);
    drop(DropAt::waiting(number).poll(healing).await);
    taken_in
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_shows_that_it_is_being_cleared_before_anything_is_deleted() {
    let servers = provisioned(3).await;
    let node = &servers.nodes()[0];
    let (mut times, mut cut_off) = (1, 0);
    loop {
        drop::<Option<String>>(node.command(&["GETDEL", MARKER]).await);
        fill_with_old(node).await;
        let nodes = servers.operated();
        let done = polled(&nodes, node.address(), times).await;
        // The order of these steps matters, because a key that is deleted was shown before.
        let left = old_left(node).await;
        let marker: Option<String> = node.command(&["GET", MARKER]).await;
        assert!(left == MANY || marker.is_some(), "{left} left, unmarked");
        if done {
            assert_eq!(left, 0);
            break;
        }
        cut_off += usize::from(marker.is_some());
        times += 1;
        assert!(times < 1000, "it never completes");
    }
    assert!(cut_off > 0, "it was never cut off half way");
    assert_eq!(states(&servers).await[0], NodeState::Healing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_operators_that_heal_a_node_at_once_do_it_once() {
    let servers = short().await;
    let node = &servers.nodes()[0];
    let locks = connect(&servers).await;
    cycle(&locks, "r").await;
    for _ in 0..5 {
        node.restart_empty().await;
        fill_with_old(node).await;
        let all = (0..4).map(|_| async {
            let nodes = servers.operated();
            let healed = nodes.heal(node.address(), |_| {}).await;
            let marker: Option<String> = node.command(&["GET", MARKER]).await;
            healed.map(|done| (done, marker))
        });
        let done: Vec<_> = join_all(all).await;
        let healed = done.iter().flatten().filter(|(done, _)| *done);
        assert!(healed.count() >= 1, "{done:?}");
        let incarnation = |(_, marker): &(bool, Option<String>)| {
            let marker = marker.clone().unwrap_or_default();
            marker.split(':').next().map(str::to_owned)
        };
        let lives: Vec<_> = done.iter().flatten().map(incarnation).collect();
        assert!(lives.iter().all(|one| *one == lives[0]), "{lives:?}");
        assert_eq!(old_left(node).await, 0);
    }
}

/// One operator is killed when it has marked the node, and another operator takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_one_operator_began_to_clear_is_taken_in_by_the_next() {
    let servers = short().await;
    let node = &servers.nodes()[0];
    cycle(&connect(&servers).await, "r").await;
    let left_behind = "1790000000000000-0123456789abcdef:c:0:0:run";
    drop::<String>(node.command(&["SET", MARKER, left_behind]).await);
    fill_with_old(node).await;
    assert_eq!(states(&servers).await[0], NodeState::Healing);
    assert!(heal(&servers, 0).await.unwrap());
    assert_eq!(states(&servers).await[0], NodeState::Serving);
    assert_eq!(old_left(node).await, 0);
}
