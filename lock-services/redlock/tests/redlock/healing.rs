//! A node that was healed can be a source when other nodes lose their state.

use std::{collections::BTreeMap, sync::Arc};

use e2e::servers::{Redis, RedlockServers, until};
use lock_core::{ErrorKind, backend::TokioRuntime};
use palisade_redlock::{HealProgress, NodeState, RedlockNodes};
use tokio::{runtime::Handle, sync::oneshot};

use crate::world::{Clients, SHORT, connect, cycle, heal, heal_until_it_waits, in_service, states};

const COUNTERS: &str = "palisade:redlock:counter:";

fn operated(servers: &RedlockServers) -> RedlockNodes {
    servers.operated()
}

async fn short(count: usize) -> RedlockServers {
    in_service(RedlockServers::start(count).await, SHORT).await
}

async fn counters(node: &Redis) -> BTreeMap<String, String> {
    let keys: Vec<String> = node.command(&["KEYS", &format!("{COUNTERS}*")]).await;
    let mut counters = BTreeMap::new();
    for key in keys {
        let count = node.command(&["GET", &key]).await;
        counters.insert(key, count);
    }
    counters
}

/// If a majority is out of service, the issued tokens are unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_healed_only_if_the_one_before_it_was_healed_to_the_end() {
    let servers = short(3).await;
    cycle(&connect(&servers).await, "r").await;
    servers.nodes()[0].restart_empty().await;
    heal_until_it_waits(&servers, 0).await;
    servers.nodes()[1].restart_empty().await;
    for node in [0, 1] {
        let error = heal(&servers, node).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(
            error
                .to_string()
                .contains("so that the issued tokens are known"),
            "{error}"
        );
    }
    let error = palisade::connect(servers.url()).await.unwrap_err();
    assert!(error.to_string().contains("being healed"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_all_of_three_nodes_were_healed_new_resources_are_granted_and_tokens_rise() {
    let servers = short(3).await;
    let clients = Clients::start(&servers.url(), 4).await;
    for node in 0..3 {
        clients.go_on(20).await;
        servers.nodes()[node].restart_empty().await;
        heal_until_it_waits(&servers, node).await;
        assert_eq!(states(&servers).await[node], NodeState::Healing);
        clients.go_on(20).await;
        assert!(heal(&servers, node).await.unwrap());
        assert_eq!(states(&servers).await[node], NodeState::Serving);
        assert!(!heal(&servers, node).await.unwrap(), "it is healed");
    }
    clients.go_on(20).await;
    let locks = connect(&servers).await;
    let first = cycle(&locks, "new").await;
    // A majority is enough.
    servers.nodes()[2].pause().await;
    let locks = connect(&servers).await;
    assert!(cycle(&locks, "new").await > first);
    cycle(&locks, "newer").await;
    clients.go_on(20).await;
    servers.nodes()[2].resume().await;
    clients.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_that_heals_a_node_may_be_cut_off_and_goes_on_later() {
    const MANY: usize = 1700;
    let servers = short(3).await;
    // Some counters are at both other nodes and some at one node, as tokens of different majorities
    // leave them.
    for (node, from) in [(1, 0), (2, 500)] {
        let pairs = (from..from + MANY).map(|number| {
            let count = 1_000_000 + number * 10 + node;
            [format!("{COUNTERS}r{number}"), count.to_string()]
        });
        let pairs: Vec<String> = pairs.flatten().collect();
        let set = ["MSET"].into_iter().chain(pairs.iter().map(String::as_str));
        let set: Vec<&str> = set.collect();
        drop::<String>(servers.nodes()[node].command(&set).await);
    }
    servers.nodes()[0].restart_empty().await;
    let made = heal_until_it_waits(&servers, 0).await;
    assert_eq!(made, 2200);
    assert_eq!(states(&servers).await[0], NodeState::Healing);
    let [healed, one, other] = [0, 1, 2].map(|node| &servers.nodes()[node]);
    let before = [counters(one).await, counters(other).await];
    let kept = counters(healed).await;
    for number in [0, 499, 500, 1699, 1700, 2199] {
        let counter = format!("{COUNTERS}r{number}");
        let most = std::cmp::max(&before[0][&counter], &before[1][&counter]);
        assert_eq!(&kept[&counter], most, "{counter}");
    }

    assert!(heal(&servers, 0).await.unwrap());
    assert_eq!(states(&servers).await[0], NodeState::Serving);
    let after = [counters(one).await, counters(other).await];
    assert!(before == after, "what is there is not counted up again");
    assert!(counters(healed).await == kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_loses_its_state_again_does_not_serve() {
    let servers = short(3).await;
    cycle(&connect(&servers).await, "r").await;
    let node = &servers.nodes()[0];
    node.restart_empty().await;
    let (waits, quiet) = oneshot::channel();
    let mut waits = Some(waits);
    let progress = move |progress| {
        if matches!(progress, HealProgress::Quiet(_))
            && let Some(waits) = waits.take()
        {
            waits.send(()).unwrap();
        }
    };
    let (url, address) = (servers.url(), node.address().to_owned());
    let first = tokio::spawn(async move {
        let nodes = RedlockNodes::new(url, Arc::new(TokioRuntime)).unwrap();
        nodes.heal(&address, progress).await
    });
    quiet.await.unwrap();
    node.restart_empty().await;
    heal_until_it_waits(&servers, 0).await;
    assert!(first.await.unwrap().is_err(), "it is another incarnation");
    assert_eq!(states(&servers).await[0], NodeState::Healing);
    assert!(heal(&servers, 0).await.unwrap());
    let locks = palisade::connect(servers.url()).await.unwrap();
    cycle(&locks, "r").await;
}

/// Only the run of a server that began a list of counters knows where the list goes on. In between,
/// another user of the same connections makes them connect again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_does_not_go_on_at_a_server_that_was_started_again() {
    let always = ["--appendonly", "yes", "--appendfsync", "always"];
    let servers = in_service(RedlockServers::start_with(3, &always).await, SHORT).await;
    for node in &servers.nodes()[1..] {
        let names = (0..2000).map(|number| format!("{COUNTERS}{number}"));
        let pairs = names.flat_map(|name| [name, "1".to_owned()]);
        let set: Vec<String> = ["MSET".to_owned()].into_iter().chain(pairs).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        drop::<String>(node.command(&set).await);
    }
    let (patient, source) = (&servers.nodes()[0], &servers.nodes()[1]);
    drop::<String>(patient.command(&["FLUSHALL"]).await);
    let nodes = operated(&servers);
    let mut pages = 0;
    let healed = nodes
        .heal(patient.address(), |_| {
            pages += 1;
            if pages == 1 {
                let again = async {
                    source.restart().await;
                    until("it is there again", async || {
                        let status = nodes.status().await;
                        status[1..].iter().all(|node| node.state.serves())
                    })
                    .await;
                };
                tokio::task::block_in_place(|| Handle::current().block_on(again));
            }
        })
        .await;
    let error = healed.expect_err("half of it was listed by another run");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(states(&servers).await[0], NodeState::Healing);
    assert!(heal(&servers, 0).await.unwrap());
    assert_eq!(counters(patient).await.len(), 2000);
}
