//! Leaders die, and the numbers of transactions are used up.

use e2e::{
    observer::until_within,
    servers::{ELECTION, ZooKeeper},
};

use crate::{load::Load, world::Namespace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaders_that_are_killed_under_load_cost_no_token_and_no_update() {
    let servers = ZooKeeper::start_ensemble().await;
    let namespace = Namespace::fresh(&servers);
    let managers = [namespace.connect().await, namespace.connect().await];
    let load = Load::start(&managers);
    for _ in 0..3 {
        load.until_granted(60).await;
        let leader = servers.leader().await;
        servers.kill(leader).await;
        // The two servers that are left go on granting.
        load.until_granted(60).await;
        servers.restart(leader).await;
        servers.until_all_serve().await;
    }
    load.until_granted(60).await;
    load.assert_sound().await;
}

/// The low half of a transaction's number, 32 bits, is used up again and again. Each time there is
/// an election, and the numbers go on in the next epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_are_used_up_cost_no_token_and_no_update() {
    const LAST: &str = "-Dzookeeper.testingonly.initialZxid=4294966900";
    let servers = ZooKeeper::start_ensemble_with(&[LAST]).await;
    let epoch = || async {
        let mut epochs = Vec::new();
        for number in 0..3 {
            epochs.extend(servers.last_zxid(number).await.map(|zxid| zxid >> 32));
        }
        epochs.into_iter().max().unwrap_or_default()
    };
    let namespace = Namespace::fresh(&servers);
    let managers = [namespace.connect().await, namespace.connect().await];
    let first = epoch().await;
    let load = Load::start(&managers);
    until_within(3 * ELECTION, "three epochs are over", async || {
        epoch().await >= first + 3
    })
    .await;
    load.until_granted(60).await;
    load.assert_sound().await;
}
