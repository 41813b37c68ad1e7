//! A failover loses the writes that the replicas did not have yet. Tokens really come again.

use std::collections::BTreeSet;

use e2e::servers::{RedisCluster, RedisWithSentinels};
use lock_core::{FencingToken, LeaseGuard, Ttl};
use palisade::store::{FenceError, FencedLocks};

use crate::topologies::{
    bank::{Account, BALANCE, Bank},
    world::{RESOURCE, Servers, turn},
};

#[tokio::test]
async fn tokens_that_a_sentinel_failover_repeats_are_refused_and_lifted() {
    repeated_tokens_are_refused_and_lifted(Servers::Sentinel(RedisWithSentinels::start().await))
        .await;
}

#[tokio::test]
async fn tokens_that_a_cluster_failover_repeats_are_refused_and_lifted() {
    let servers = RedisCluster::start_with_replicas(&[]).await;
    repeated_tokens_are_refused_and_lifted(Servers::Cluster(servers)).await;
}

async fn repeated_tokens_are_refused_and_lifted(servers: Servers) {
    let bank = Bank::open().await;
    let (counting, by_the_clock) = (servers.counting(), servers.by_the_clock());
    let clocked = by_the_clock.connect().await;
    let accounts = FencedLocks::new(counting.connect().await, bank.store.clone());
    let rival = FencedLocks::new(counting.connect().await, bank.store.clone());
    let mut issued = BTreeSet::new();
    for _ in 0..3 {
        issued.insert(turn(accounts.locks()).await);
    }
    turn(&clocked).await;
    let group = servers.of_resource(&counting).await;
    group.until_in_step().await;

    group.cut_replicas_off().await;
    let newest_by_the_clock = turn(&clocked).await;
    issued.insert(turn(accounts.locks()).await);
    issued.insert(turn(accounts.locks()).await);
    let stale = accounts
        .acquire(RESOURCE)
        .ttl(Ttl::secs(60))
        .renew(false)
        .await
        .unwrap();
    issued.insert(stale.token());
    let its_read = bank.balance(Account::Unfenced).await;
    group.lose_primary().await;

    // The control is the lock alone: another client holds it, too, with a token that was issued
    // before, and an update is lost.
    let repeated = rival.locks().acquire(RESOURCE).await.unwrap();
    assert!(stale.remaining().is_ok(), "the first holder believes too");
    let pool = bank.store.pool();
    bank.set(Account::Unfenced, BALANCE + 50, pool).await;
    bank.set(Account::Unfenced, its_read + 10, pool).await;
    assert_eq!(bank.balance(Account::Unfenced).await, BALANCE + 10);

    // The store refuses a token that comes again.
    refused(&bank, &issued, repeated).await;
    let again = rival.locks().acquire(RESOURCE).await.unwrap();
    refused(&bank, &issued, again).await;

    // The next token is equal to the token of the first holder, and the floor lifts the counter
    // above it.
    let current = rival.acquire(RESOURCE).await.unwrap();
    assert_eq!(rival.floor_repairs(), 1);
    assert!(current.token() > stale.token());
    let its_read = bank.balance(Account::Fenced).await;
    let mut tx = current.begin().await.unwrap();
    bank.set(Account::Fenced, its_read + 50, &mut *tx).await;
    tx.commit().await.unwrap();
    let late = bank.store.begin(stale.sequencer()).await.unwrap_err();
    assert!(matches!(late, FenceError::Stale { .. }), "{late}");
    assert_eq!(bank.balance(Account::Fenced).await, BALANCE + 50);

    // Tokens by the clock go on rising, for the old client and for a new client.
    let rising = [
        newest_by_the_clock,
        turn(&clocked).await,
        turn(&by_the_clock.connect().await).await,
    ];
    assert!(
        rising.is_sorted_by(|earlier, later| earlier < later),
        "{rising:?}"
    );
}

async fn refused(bank: &Bank, issued: &BTreeSet<FencingToken>, repeated: LeaseGuard) {
    let token = repeated.token();
    assert!(issued.contains(&token), "{token} is none of {issued:?}");
    let refused = bank.store.claim(repeated.sequencer()).await.unwrap_err();
    assert!(refused.is_fenced(), "{refused}");
    repeated.release().await.unwrap();
}
