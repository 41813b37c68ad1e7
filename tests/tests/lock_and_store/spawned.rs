//! Each call that takes a section runs in a spawned task, as leaders and jobs do. The code is
//! plain, and all values are moved into the task.

#![expect(
    clippy::disallowed_methods,
    reason = "that it can be spawned is the claim, and each task is waited for"
)]

use std::{sync::Arc, time::Duration};

use fenced_jobs::{Jobs, Missed, Schedule};
use fenced_store::{FenceError, FencedLockError, FencedLocks, SqliteFencedStore};
use lock_core::{Error, LockManager};
use sqlx::{Sqlite, SqlitePool};
use tokio::{sync::Semaphore, task::yield_now, time::timeout};

const PATIENCE: Duration = Duration::from_secs(30);
const ADD: &str = "UPDATE accounts SET balance = balance + 1";

struct World {
    _folder: tempfile::TempDir,
    locks: LockManager,
    accounts: FencedLocks<Sqlite>,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(folder.path().join("db"))
            .create_if_missing(true);
        let options = SqliteFencedStore::recommended(options);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        sqlx::raw_sql("CREATE TABLE accounts AS SELECT 42 AS id, 0 AS balance")
            .execute(&pool)
            .await
            .unwrap();
        let store = SqliteFencedStore::new(pool);
        store.migrate().await.unwrap();
        let locks = palisade::connect("memory:").await.unwrap();
        Self {
            _folder: folder,
            accounts: FencedLocks::new(locks.clone(), store),
            locks,
        }
    }

    async fn balance(&self) -> i64 {
        let balance = sqlx::query_scalar("SELECT balance FROM accounts");
        balance
            .fetch_one(self.accounts.store().pool())
            .await
            .unwrap()
    }
}

/// Waits for the result of a task.
async fn done<T>(task: tokio::task::JoinHandle<T>) -> T {
    timeout(PATIENCE, task).await.expect("it goes on").unwrap()
}

/// Catches: a leader that cannot be written as `tokio::spawn(async move { .. })`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaders_are_spawned() {
    let world = World::new().await;
    let (locks, log) = (world.locks.clone(), Arc::new(Semaphore::new(0)));
    let entries = Arc::clone(&log);
    let leader = tokio::spawn(async move {
        let lead = locks.lead("a");
        lead.run(async move |term| {
            let token = term.token();
            yield_now().await;
            entries.add_permits(1);
            Ok::<_, Error>(token)
        })
        .await
    });
    done(leader).await.unwrap();
    assert_eq!(log.available_permits(), 1);

    let shop = world.accounts.clone();
    let leader = tokio::spawn(async move {
        shop.lead("a")
            .run(async |term| {
                let mut tx = term.begin().await?;
                sqlx::query(ADD).execute(&mut *tx).await?;
                tx.commit().await?;
                Ok::<_, FencedLockError>(())
            })
            .await
    });
    done(leader).await.unwrap();
    assert_eq!(world.balance().await, 1);
}

/// Catches: a section under a lock that cannot be spawned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sections_are_spawned() {
    let world = World::new().await;
    let (locks, shop) = (world.locks.clone(), world.accounts.clone());
    let section = tokio::spawn(async move {
        let name = String::from("borrowed");
        let first = locks
            .acquire("r")
            .run(async |guard| {
                yield_now().await;
                Ok::<_, Error>(guard.token())
            })
            .await?;
        let second = locks
            .acquire("r")
            .run(async |guard| {
                yield_now().await;
                assert_eq!(name, "borrowed");
                Ok::<_, Error>(guard.token())
            })
            .await?;
        Ok::<_, Error>(first < second)
    });
    assert!(done(section).await.unwrap());

    let section = tokio::spawn(async move {
        let amount = 1;
        shop.acquire("account:42")
            .run(async |guard| {
                let (balance, _receipt) = guard
                    .transact(async |tx| {
                        let add = "UPDATE accounts SET balance = balance + $1 RETURNING balance";
                        let add = sqlx::query_scalar(add).bind(amount);
                        let balance: i64 = add.fetch_one(&mut **tx).await?;
                        Ok::<_, FenceError>(balance)
                    })
                    .await?;
                Ok::<_, FencedLockError>(balance)
            })
            .await
    });
    assert_eq!(done(section).await.unwrap(), 1);
}

/// Catches: a job that cannot be spawned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_spawned() {
    let world = World::new().await;
    let shop = world.accounts.clone();
    let jobs = tokio::spawn(async move {
        let amount = 1;
        let ran = shop
            .once("interest", "a")
            .run(async |tx| {
                yield_now().await;
                sqlx::query("UPDATE accounts SET balance = balance + $1")
                    .bind(amount)
                    .execute(&mut **tx)
                    .await?;
                Ok::<_, FencedLockError>(())
            })
            .await?;
        let stepped = shop
            .once("interest", "b")
            .steps(async |job| {
                let step = job.step(async |tx| {
                    sqlx::query(ADD).execute(&mut **tx).await?;
                    Ok::<_, FencedLockError>(amount)
                });
                step.await?;
                Ok::<_, FencedLockError>(())
            })
            .await?;
        Ok::<_, FencedLockError>(ran.is_done() && stepped.is_done())
    });
    assert!(done(jobs).await.unwrap());
    assert_eq!(world.balance().await, 2);

    let shop = world.accounts.clone();
    let scheduled = tokio::spawn(async move {
        let schedule = Schedule::new("* * * * *", "UTC").unwrap();
        let amount = 1;
        shop.scheduled("hourly", &schedule)
            .since("2026-01-01T00:00:00Z".parse().unwrap())
            .missed(Missed::RunNewest)
            .run(async move |_slot, tx| {
                yield_now().await;
                sqlx::query("UPDATE accounts SET balance = balance + $1")
                    .bind(amount)
                    .execute(&mut **tx)
                    .await?;
                Ok::<_, FencedLockError>(())
            })
            .await
    });
    done(scheduled).await.unwrap();
    assert_eq!(world.balance().await, 3);
}
