//! Eight clients, nodes that miss a quarter of all requests and get a third of the others late,
//! and leases that vanish all the time. This test would show a raise that compares nothing.
//! `scripts/test` runs it when nothing else runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use e2e::{
    history::History,
    proxy::{Losses, LossyProxy},
    servers::{RedlockServers, until},
};
use futures_util::future::join_all;
use redis::{Client, aio::MultiplexedConnection};

use crate::{
    naive,
    world::{Clients, provisioned},
};

const CLIENTS: usize = 8;
const GRANTS: usize = 250;
const NODES: usize = 3;

const LOSSES: Losses = Losses {
    requests: 0.2,
    answers: 0.05,
    late: 0.3,
};

/// Deletes leases of random nodes, as clocks that jump would end them, until the test is over.
/// Sometimes it deletes the leases of all nodes, so that there certainly are two holders.
async fn jumper(nodes: Vec<MultiplexedConnection>, over: Arc<AtomicBool>) {
    let leases = [
        "palisade:redlock:lease:r0",
        "palisade:redlock:lease:r1",
        naive::LOCK,
    ];
    while !over.load(Ordering::Relaxed) {
        for lease in leases {
            let one = rand::random_range(0..nodes.len());
            let all = rand::random_bool(0.15);
            for (node, connection) in nodes.iter().enumerate() {
                if all || node == one {
                    let mut connection = connection.clone();
                    let mut delete = redis::cmd("DEL");
                    let deleted = delete.arg(lease).exec_async(&mut connection).await;
                    deleted.unwrap();
                }
            }
        }
        tokio::time::sleep(Duration::from_micros(1500)).await;
    }
}

async fn connections(servers: &RedlockServers) -> Vec<MultiplexedConnection> {
    join_all(servers.nodes().iter().map(|node| async {
        let client = Client::open(node.url()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }))
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_three_nodes_rise_and_never_repeat_where_the_greatest_count_does() {
    let servers = provisioned(NODES).await;
    let proxies = servers.nodes().iter();
    let proxies = join_all(proxies.map(|node| LossyProxy::start(node.address(), LOSSES))).await;
    let addresses: Vec<_> = proxies
        .iter()
        .map(|proxy| proxy.address().to_string())
        .collect();
    let url = format!("redlock+redis://{}", addresses.join(","));

    let over = Arc::new(AtomicBool::new(false));
    let jumper = tokio::spawn(jumper(connections(&servers).await, Arc::clone(&over)));
    let naive = Arc::new(History::default());
    let mut controls = Vec::new();
    for _ in 0..CLIENTS {
        let (history, over) = (Arc::clone(&naive), Arc::clone(&over));
        controls.push(tokio::spawn(naive::client(
            addresses.clone(),
            history,
            over,
        )));
    }
    let clients = Clients::start(&url, CLIENTS).await;
    clients.go_on(GRANTS).await;
    until("grants of the control", async || naive.grants() >= GRANTS).await;
    let load = clients.end().await;
    over.store(true, Ordering::Relaxed);
    jumper.await.unwrap();
    for control in join_all(controls).await {
        control.unwrap();
    }

    let (disordered, repeated) = (naive.out_of_order().len(), naive.repeated().len());
    println!(
        "{NODES} nodes: {} grants, {} lost from the twins; naive: {} grants, {disordered} out of \
         order, {repeated} repeated",
        load.history.grants(),
        load.lost_from_twins(),
        naive.grants(),
    );
    assert!(disordered > 0 && repeated > 0, "the control shows nothing");
    assert!(load.lost_from_twins() > 0, "the unfenced twin lost nothing");
}
