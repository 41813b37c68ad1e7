//! A primary stands still, gets a successor, and goes on as if nothing had happened.

use e2e::servers::{RedisWithSentinels, until};
use lock_core::{Attempt, ErrorKind, Outcome, Ttl};
use palisade::store::{FenceError, FencedLocks};

use crate::topologies::{
    bank::{Account, BALANCE, Bank},
    world::{Namespace, RESOURCE, Servers, turn},
};

/// The control: the old primary grants a token that its successor has already granted. The store
/// refuses it.
#[tokio::test]
async fn a_primary_that_was_succeeded_grants_the_same_tokens_and_the_store_refuses_them() {
    let servers = Servers::Sentinel(RedisWithSentinels::start().await);
    let bank = Bank::open().await;
    let counting = servers.counting();
    let direct = succeeded(&servers, &counting).await;
    let current = FencedLocks::new(counting.connect().await, bank.store.clone());
    let acquire = current.acquire(RESOURCE);
    let current = acquire.ttl(Ttl::secs(60));
    let current = current.await.unwrap();
    let group = servers.of_resource(&counting).await;
    group.primary().resume().await;

    let second = direct.acquire(RESOURCE).ttl(Ttl::secs(60)).await.unwrap();
    assert_eq!(second.token(), current.token());
    assert!(current.remaining().is_ok() && second.remaining().is_ok());
    let pool = bank.store.pool();
    bank.set(Account::Unfenced, BALANCE + 50, pool).await;
    bank.set(Account::Unfenced, BALANCE + 10, pool).await;
    assert_eq!(
        bank.balance(Account::Unfenced).await,
        BALANCE + 10,
        "nothing was lost"
    );

    let refused = bank.store.claim(second.sequencer()).await.unwrap_err();
    assert!(
        matches!(refused, FenceError::DuplicateToken { .. }),
        "{refused}"
    );
    current.begin().await.unwrap().commit().await.unwrap();
}

/// With `min-replicas-to-write` the old primary grants nothing, because its replicas follow the
/// successor.
#[tokio::test]
async fn a_primary_that_was_succeeded_grants_nothing_if_it_needs_a_replica() {
    let needs_one = ["--min-replicas-to-write", "1"];
    let servers = Servers::Sentinel(RedisWithSentinels::start_with(&needs_one).await);
    let counting = servers.counting();
    let direct = succeeded(&servers, &counting).await;
    let current = counting.connect().await;
    let before = turn(&current).await;
    let group = servers.of_resource(&counting).await;
    let primary = group.primary();
    primary.resume().await;
    // It takes a moment until the old primary sees that its replicas are gone.
    until("it has no replica", || async {
        let info: String = primary.command(&["INFO", "replication"]).await;
        info.contains("min_slaves_good_slaves:0")
    })
    .await;

    // If a request is still under way when the response timeout is over, its outcome is unknown.
    until("it knows that nothing was applied", || async {
        let error = match direct.try_acquire(RESOURCE).await {
            Err(error) => error,
            Ok(Attempt::Granted(guard)) => panic!("granted {} beside {before}", guard.token()),
            Ok(held) => panic!("{held:?}"),
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        error.outcome() == Outcome::NotApplied && error.to_string().contains("NOREPLICAS")
    })
    .await;
    assert!(turn(&current).await > before);
}

/// Pauses the primary until the sentinels have another one. Returns a client that does not notice
/// this, like a client whose connection survives the failover.
async fn succeeded(servers: &Servers, namespace: &Namespace) -> lock_core::LockManager {
    let usual = namespace.connect().await;
    turn(&usual).await;
    let group = servers.of_resource(namespace).await;
    let direct = namespace.connect_to(group.primary().url()).await;
    turn(&direct).await;
    group.until_in_step().await;
    group.primary().pause().await;
    group.until_taken_over().await;
    if let Servers::Sentinel(sentinel) = servers {
        sentinel.until_known().await;
    }
    direct
}
