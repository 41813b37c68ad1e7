//! Lock service and store in one database: acquire and claim in one round trip, commit and release
//! in another.

use std::time::Duration;

use e2e::servers::{PgBouncer, PoolMode, PostgresDatabase, until};
use fenced_store::{
    FenceError, FencedGuard, FencedTx, NotCommitted, PgFencedLocks, PgFencedStore, PgTxOptions,
};
use futures_util::poll;
use lock_core::{Inspection, ResourceName, backend::StoreSide};
use sqlx::{Executor, PgPool, Postgres};

use crate::world::{count, database, manager, named};

const BALANCE: &str = "select balance from accounts";

struct World {
    database: PostgresDatabase,
    pool: PgPool,
    accounts: PgFencedLocks,
}

impl World {
    /// A world whose store has been claimed before. Only the first claim of a store differs.
    async fn new() -> Self {
        let database = database().await;
        let pool = PgPool::connect(database.url()).await.unwrap();
        pool.execute(
            "create table accounts (balance bigint unique deferrable initially deferred);
             insert into accounts values (100)",
        )
        .await
        .unwrap();
        let accounts = palisade::open(PgFencedStore::new(pool.clone())).await;
        let accounts = accounts.unwrap();
        let first = accounts.acquire("another").await.unwrap();
        assert!(!first.is_claimed(), "it has no issuer yet");
        first.release().await.unwrap();
        Self {
            database,
            pool,
            accounts,
        }
    }

    /// A section that is complete except for the commit.
    async fn deposited(&self) -> (FencedGuard<Postgres>, FencedTx<Postgres>) {
        let guard = self.accounts.acquire("account:42").await.unwrap();
        let mut tx = guard.begin().await.unwrap();
        deposit(&mut tx).await;
        (guard, tx)
    }

    async fn balance(&self) -> i64 {
        count(&self.pool, BALANCE).await
    }

    async fn is_free(&self, resource: &ResourceName) -> bool {
        let now: Inspection = self.accounts.locks().inspect(resource).await.unwrap();
        now.holder.is_none()
    }

    /// Checks that the guard still holds its lease, and goes on.
    async fn still_holds(&self, not_committed: NotCommitted<Postgres>) {
        let (_, guard) = not_committed.into_parts();
        guard.remaining().unwrap();
        assert!(!self.is_free(guard.resource()).await);
        let mut tx = guard.begin().await.unwrap();
        deposit(&mut tx).await;
        tx.commit_and_release(guard).await.unwrap();
        assert_eq!(self.balance().await, 101);
        assert!(self.is_free(&named("account:42")).await);
    }
}

async fn deposit(connection: &mut sqlx::PgConnection) {
    let update = "update accounts set balance = balance + 1";
    connection.execute(update).await.unwrap();
}

#[tokio::test]
async fn a_cycle_claims_where_it_acquires_and_releases_where_it_commits() {
    let world = World::new().await;
    let guard = world.accounts.acquire("account:42").await.unwrap();
    assert!(guard.is_claimed());
    let (token, resource) = (guard.token(), guard.resource().clone());
    let mark = world.accounts.store().high_water(&resource).await.unwrap();
    assert_eq!(mark.unwrap().token(), token);

    let mut tx = guard.begin().await.unwrap();
    deposit(&mut tx).await;
    let receipt = tx.commit_and_release(guard).await.unwrap();
    assert_eq!(receipt.token(), token);
    assert_eq!(world.balance().await, 101);
    assert!(world.is_free(&resource).await);
    // The release needed no tombstone, because every request of this acquisition was answered.
    let tombstones = "select count(*) from fenced.tombstone where resource = 'account:42'";
    assert_eq!(count(&world.pool, tombstones).await, 0);
}

/// A claim in the same step would wait for that transaction while it locks the row of the resource.
#[tokio::test]
async fn a_claim_that_finds_an_older_transaction_open_is_made_apart() {
    let world = World::new().await;
    let options = PgTxOptions::default().lock_timeout(Some(Duration::from_millis(100)));
    let store = world.accounts.store().clone().with_options(options);
    let accounts = PgFencedLocks::in_one_database(world.accounts.locks().clone(), store);
    let old = accounts.acquire("account:42").await.unwrap();
    let mut tx = old.begin().await.unwrap();
    deposit(&mut tx).await;
    let ended = accounts.locks().force_release(old.resource());
    ended.await.unwrap();

    let new = accounts.acquire("account:42").await.unwrap();
    assert!(!new.is_claimed());
    tx.commit().await.unwrap_err();
    let tx = new.begin().await.unwrap();
    tx.commit_and_release(new).await.unwrap();
    assert_eq!(world.balance().await, 100);
}

/// A statement before the commit fails, or the commit itself fails after the statements before it
/// were executed.
#[tokio::test]
async fn nothing_is_released_unless_it_is_committed() {
    for statement in ["select 1 / 0", "insert into accounts values (101)"] {
        let world = World::new().await;
        let (guard, mut tx) = world.deposited().await;
        let fails_at_once = tx.execute(statement).await.is_err();
        let failed = tx.commit_and_release(guard).await.unwrap_err();
        let is_aborted = matches!(failed.error, FenceError::Aborted);
        assert_eq!(is_aborted, fails_at_once, "{statement}: {failed:?}");
        world.still_holds(failed).await;
    }
}

/// The database of the transaction does not know the lease.
/// Catches: a lease that stays, because it was looked for in the wrong database.
#[tokio::test]
async fn a_guard_of_another_database_is_released_there() {
    let (world, elsewhere) = (World::new().await, World::new().await);
    let (_guard, tx) = world.deposited().await;
    let other = elsewhere.accounts.acquire("account:43").await.unwrap();
    tx.commit_and_release(other).await.unwrap();
    assert_eq!(world.balance().await, 101);
    assert!(elsewhere.is_free(&named("account:43")).await);
}

#[tokio::test]
async fn a_commit_stands_although_the_release_in_its_message_fails() {
    let world = World::new().await;
    let (guard, tx) = world.deposited().await;
    let broken = "alter function fenced.release rename to released";
    world.pool.execute(broken).await.unwrap();
    tx.commit_and_release(guard).await.unwrap();
    assert_eq!(world.balance().await, 101);
    assert!(!world.is_free(&named("account:42")).await);
    let mended = "alter function fenced.released rename to release";
    world.pool.execute(mended).await.unwrap();
    until("the watchdog has released it", async || {
        world.is_free(&named("account:42")).await
    })
    .await;
}

/// If a commit is dropped after it was sent, the commit and the release are finished. If it is
/// dropped before, neither happens.
#[tokio::test]
async fn a_dropped_commit_is_committed_and_released_or_rolled_back() {
    const POLLS: usize = 4;
    let world = World::new().await;
    let mut expected = 100;
    for polls in 0..=POLLS {
        let (guard, tx) = world.deposited().await;
        let mut committed = Box::pin(tx.commit_and_release(guard));
        for _ in 0..polls {
            let answer = poll!(&mut committed);
            if answer.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(committed);
        until("it is free", async || {
            world.is_free(&named("account:42")).await
        })
        .await;
        expected += i64::from(polls > 0);
        until("it has ended", async || world.balance().await == expected).await;
    }
}

/// Two databases that were configured as one. A claim in one of them is no claim in the other.
#[tokio::test]
async fn with_two_databases_nothing_is_accepted() {
    let world = World::new().await;
    let elsewhere = database().await;
    let locks = manager(elsewhere.url()).await;
    locks
        .acquire("first")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    // The store of the other database was claimed before, so that claims in the same step succeed.
    let pool = PgPool::connect(elsewhere.url()).await.unwrap();
    let there = PgFencedLocks::new(locks.clone(), PgFencedStore::new(pool));
    there
        .acquire("first")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();

    let accounts = PgFencedLocks::in_one_database(locks, world.accounts.store().clone());
    let guard = accounts.acquire("account:42").await.unwrap();
    assert!(guard.is_claimed());
    let refused = guard.begin().await.unwrap_err();
    assert!(
        matches!(refused, FenceError::MarkLost { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn it_works_through_a_pooler_in_transaction_mode() {
    let world = World::new().await;
    let pooler = PgBouncer::start(&world.database, PoolMode::Transaction).await;
    let pool = PgPool::connect(&pooler.url(&world.database)).await.unwrap();
    let accounts = palisade::open(PgFencedStore::new(pool)).await.unwrap();
    for _ in 0..10 {
        let guard = accounts.acquire("account:42").await.unwrap();
        assert!(guard.is_claimed());
        let mut tx = guard.begin().await.unwrap();
        deposit(&mut tx).await;
        tx.commit_and_release(guard).await.unwrap();
    }
    assert_eq!(world.balance().await, 110);
    assert!(world.is_free(&named("account:42")).await);
}

/// The release in the message of the commit notifies the waiter.
#[tokio::test]
async fn the_commit_wakes_the_waiter() {
    let world = World::new().await;
    let guard = world.accounts.acquire("account:42").await.unwrap();
    let accounts = world.accounts.clone();
    let next = tokio::spawn(async move { accounts.acquire("account:42").await });
    let waiting = "select count(*) from fenced.waiter";
    until("it waits", async || count(&world.pool, waiting).await == 1).await;
    let tx = guard.begin().await.unwrap();
    tx.commit_and_release(guard).await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert!(next.is_claimed());
}
