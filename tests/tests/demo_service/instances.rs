//! Several gateways over one Redis and one Postgres are one service, also while one of them dies.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use e2e::servers::{postgres_database, redis};
use rustix::process::{Signal, kill_process};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    balancer::Balancer,
    depositor::{Depositor, Tally},
    gateway::Gateway,
};

const ACCOUNTS: usize = 2;
const CLIENTS_PER_ACCOUNT: usize = 3;

/// Deposits after which one gateway is killed, another takes its place, a third gets SIGTERM, and
/// the clients stop.
const KILL: u64 = 40;
const REPLACE: u64 = 80;
const TERMINATE: u64 = 120;
const STOP: u64 = 160;

/// Ends a run that hangs.
const PATIENCE: Duration = Duration::from_secs(240);

/// Deposits until there are enough; the first client of each account is late three times before.
async fn client(depositor: Depositor, tally: Arc<Tally>, is_first: bool) {
    if is_first {
        for _ in 0..3 {
            depositor.deposit_late().await;
        }
    }
    while *tally.fenced.borrow() < STOP {
        depositor.deposit().await;
    }
}

/// Kills one gateway in the middle, puts another in its place, and sends SIGTERM to a third.
async fn nemesis(gateways: &mut [Gateway], arguments: &[&str], balancer: &Balancer, tally: &Tally) {
    let mut deposits = tally.fenced.subscribe();
    let mut after = async |wanted: u64| {
        deposits
            .wait_for(|deposits| *deposits >= wanted)
            .await
            .unwrap();
    };
    after(KILL).await;
    gateways[0].process.kill().await;
    after(REPLACE).await;
    gateways[0] = Gateway::start_with(arguments).await;
    balancer.replace(0, &gateways[0].url);
    after(TERMINATE).await;
    kill_process(gateways[1].process.id(), Signal::TERM).unwrap();
    assert_eq!(gateways[1].process.finish().await.code(), Some(0));
}

/// Every request goes to the next gateway: a lease is acquired at one, renewed at another, released
/// at a third. One is killed in the middle and replaced, one gets SIGTERM. No deposit that was
/// accepted is lost behind the fence; without it, in the same run, some are.
#[tokio::test]
async fn three_gateways_are_one_service_while_one_is_killed() {
    let (redis, database) = (redis().await, postgres_database().await);
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, "k1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
    let keys = keys.to_str().unwrap();
    let servers = ["--lock", redis.url(), "--store", database.url()];
    let arguments = [
        &servers[..],
        &["--signing-keys", keys, "--log", "error", "--unfenced"],
    ]
    .concat();
    let mut gateways = Vec::new();
    for _ in 0..3 {
        gateways.push(Gateway::start_with(&arguments).await);
    }
    let urls = gateways.iter().map(|gateway| gateway.url.clone());
    let balancer = Balancer::start(urls.collect()).await;
    let tally = Tally::new();
    let run = format!("{:x}", rand::random::<u64>());
    let accounts: Vec<_> = (0..ACCOUNTS)
        .map(|number| Depositor::new(balancer.url(), &format!("{run}-{number}"), &tally))
        .collect();

    let mut clients = JoinSet::new();
    for depositor in &accounts {
        for number in 0..CLIENTS_PER_ACCOUNT {
            clients.spawn(client(depositor.clone(), Arc::clone(&tally), number == 0));
        }
    }
    let working = async {
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
    };
    let nemesis = nemesis(&mut gateways, &arguments, &balancer, &tally);
    let all = async { tokio::join!(nemesis, working) };
    timeout(PATIENCE, all)
        .await
        .expect("the clients do not go on");
    check(&accounts, &tally).await;
}

async fn check(accounts: &[Depositor], tally: &Tally) {
    let (mut fenced, mut unfenced) = (0, 0);
    for depositor in accounts {
        fenced += depositor.balance("accounts", None).await.unwrap();
        unfenced += depositor.balance("unfenced/accounts", None).await.unwrap();
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (accepted, accepted_unfenced) = (*tally.fenced.borrow(), count(&tally.unfenced));
    println!(
        "{accepted} deposits fenced, {fenced} in the accounts, {} late ones refused; \
         {accepted_unfenced} unfenced, {unfenced} in the accounts; {} leases at three gateways, \
         {} found again at another, {} requests sent again",
        count(&tally.stale),
        count(&tally.well_travelled),
        count(&tally.found_again),
        count(&tally.sent_again),
    );
    assert_eq!(fenced.unsigned_abs(), accepted, "a deposit got lost");
    tally.history.assert_sound();
    // The faults have happened, and would have been seen.
    assert!(count(&tally.stale) >= 1, "no client was late");
    let control = unfenced.unsigned_abs();
    assert!(control < accepted_unfenced, "the control has lost nothing");
    assert!(count(&tally.sent_again) >= 1, "no gateway was missed");
    assert!(count(&tally.well_travelled) >= 3);
    assert!(count(&tally.found_again) >= 3);
}
