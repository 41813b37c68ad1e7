//! Redis and Postgres together, when one of them has lost state that the other has.

use std::{future::IntoFuture, time::Duration};

use e2e::servers::{PostgresDatabase, Redis, apart, postgres_database, redis};
use fenced_store::{FenceError, FencedLockError, FencedLocks, PgFencedStore, PgTxOptions};
use lock_core::{
    ErrorKind, FencingToken, Holder, InitialToken, Plausibility, ResourceName, Sequencer, Ttl,
};
use sqlx::{PgPool, Postgres};

struct World {
    accounts: FencedLocks<Postgres>,
    _database: PostgresDatabase,
}

async fn world(lock: &str, initial: InitialToken) -> World {
    let database = postgres_database().await;
    let store = PgFencedStore::new(PgPool::connect(database.url()).await.unwrap());
    store.migrate().await.unwrap();
    let accounts = FencedLocks::new(
        palisade::connect(apart(lock))
            .initial_token(initial)
            .await
            .unwrap(),
        store,
    );
    World {
        accounts,
        _database: database,
    }
}

impl World {
    async fn high_water(&self, resource: &str) -> FencingToken {
        let resource = ResourceName::new(resource).unwrap();
        self.accounts
            .store()
            .high_water(&resource)
            .await
            .unwrap()
            .unwrap()
            .token()
    }

    /// Claims a token that the lock service did not issue.
    async fn poison(&self, resource: &str, token: FencingToken) {
        let issuer = self.accounts.locks().issuer().clone();
        let resource = ResourceName::new(resource).unwrap();
        let poison = Sequencer::new(issuer, resource, token, Holder::random());
        let trusting = self.accounts.store().clone();
        let trusting = trusting.plausibility(Plausibility::unchecked());
        trusting.claim(&poison).await.unwrap();
    }
}

/// Tokens start at the clock. So the tokens that a server issued before it came back empty are
/// smaller.
#[tokio::test]
async fn after_the_loss_of_redis_the_next_grant_is_above_the_mark() {
    let server = Redis::start().await;
    let world = world(server.url(), InitialToken::Clock).await;
    let before = world.accounts.acquire("account:1").await.unwrap();
    let mark = world.high_water("account:1").await;
    assert_eq!(mark, before.token());
    server.restart_empty().await;

    let after = world.accounts.acquire("account:1").await.unwrap();
    assert!(
        after.token() > mark,
        "{} is not above the mark {mark}",
        after.token()
    );
    assert_eq!(world.accounts.floor_repairs(), 0);
    after.begin().await.unwrap().commit().await.unwrap();
    let refused = world
        .accounts
        .store()
        .begin(before.sequencer())
        .await
        .unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused}");
}

/// Tokens that start over are refused by the store, and the floor lifts the lock service above it.
#[tokio::test]
async fn a_lock_service_that_starts_over_is_lifted_above_the_mark() {
    let server = Redis::start().await;
    let world = world(server.url(), InitialToken::At(FencingToken::MIN)).await;
    for _ in 0..5 {
        world
            .accounts
            .acquire("account:1")
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
    let mark = world.high_water("account:1").await;
    server.restart_empty().await;
    // The token that the lock service alone would grant now: the control.
    let repeated = world.accounts.locks().acquire("account:1").await.unwrap();
    assert!(repeated.token() <= mark);
    let refused = world
        .accounts
        .store()
        .claim(repeated.sequencer())
        .await
        .unwrap_err();
    assert!(refused.is_fenced());
    repeated.release().await.unwrap();

    let after = world.accounts.acquire("account:1").await.unwrap();
    assert!(after.token() > mark);
    assert_eq!(world.accounts.floor_repairs(), 1);
    after.begin().await.unwrap().commit().await.unwrap();
}

/// One mark at the end of all tokens must not use up the tokens of its shard.
#[tokio::test]
async fn a_poisoned_mark_leaves_the_other_resources_of_its_shard_alive() {
    let world = world(redis().await.url(), InitialToken::Clock).await;
    let neighbour = || world.accounts.acquire("{shard}:neighbour");
    let before = neighbour().await.unwrap();
    let first = before.token();
    before.release().await.unwrap();
    for poison in [
        FencingToken::MAX,
        FencingToken::new(900_000_000_000_000).unwrap(),
    ] {
        let poisoned = format!("{{shard}}:{poison}");
        world.poison(&poisoned, poison).await;
        let error = world.accounts.acquire(poisoned.as_str()).await.unwrap_err();
        match error {
            // There is no token above the last one.
            FencedLockError::Store(FenceError::Stale { high_water, .. }) => {
                assert_eq!((high_water, poison), (FencingToken::MAX, FencingToken::MAX));
            }
            FencedLockError::Lock(error) => {
                assert_eq!(error.kind(), ErrorKind::FloorImplausible, "{error}");
            }
            error => panic!("{error}"),
        }
        let resource = ResourceName::new(poisoned).unwrap();
        let left = world.accounts.locks().inspect(&resource).await.unwrap();
        assert_eq!(left.holder, None, "a lease was left behind");
    }
    let after = neighbour().await.unwrap();
    // The counter was lifted by a minute of the clock at most, and not up to the poisoned mark.
    assert!(after.token().get() - first.get() < 60 * 100_000);
    after.begin().await.unwrap().commit().await.unwrap();
}

/// A claim waits for the transactions of older holders, and the lease may run out meanwhile.
/// Catches: a guard whose lease is lost already when the caller gets it.
#[tokio::test]
async fn a_lease_that_ended_during_its_claim_is_acquired_afresh() {
    let world = world(redis().await.url(), InitialToken::Clock).await;
    let older = world.accounts.acquire("account:1").await.unwrap();
    let open = older.begin().await.unwrap();
    older.release().await.unwrap();
    let ttl = Ttl::secs(2);
    let patient = PgTxOptions::default().lock_timeout(Some(Duration::from_secs(30)));
    let acquire = world
        .accounts
        .acquire("account:1")
        .tx_options(patient)
        .ttl(ttl)
        .renew(false)
        .into_future();
    let commit = async {
        // Longer than the lease, but shorter than the claim waits.
        tokio::time::sleep(ttl.get() * 3 / 2).await;
        open.commit().await.unwrap()
    };
    let (acquired, receipt) = tokio::join!(acquire, commit);
    let guard = acquired.unwrap();
    assert!(guard.remaining().is_ok());
    assert!(guard.token() > receipt.token());
    guard.begin().await.unwrap().commit().await.unwrap();
}
