//! Applications in one database, each with leases of its own prefix.

use std::time::Duration;

use e2e::servers::PostgresDatabase;
use fenced_store::{FenceError, PgFencedLocks};
use lock_core::{Attempt, LockManager, backend::ConnectOptions};
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::world::{count, database, manager, named};

const BALANCE: &str = "select balance from accounts";

async fn with_prefix(database: &PostgresDatabase, prefix: &str) -> LockManager {
    let connecting = palisade::connect(database.url()).prefix(prefix);
    connecting.await.unwrap()
}

fn names(listed: &[lock_core::Listed]) -> Vec<&str> {
    listed.iter().map(|one| one.resource.as_str()).collect()
}

#[tokio::test]
async fn leases_of_different_prefixes_do_not_see_each_other() {
    let database = database().await;
    let clients = [
        manager(database.url()).await,
        with_prefix(&database, "jobs").await,
        with_prefix(&database, "job").await,
    ];
    let longest = named(&"r".repeat(256));
    let mut guards = Vec::new();
    for (number, locks) in clients.iter().enumerate() {
        guards.push(locks.acquire("r").await.unwrap());
        guards.push(locks.acquire(&longest).await.unwrap());
        guards.push(locks.acquire(format!("own:{number}")).await.unwrap());
    }
    for (number, locks) in clients.iter().enumerate() {
        // The control: within the prefix the resource is held.
        let second = locks.try_acquire("r").await.unwrap();
        assert!(matches!(second, Attempt::Held { .. }), "{second:?}");
        let own = format!("own:{number}");
        let mut listed = locks.list().await.unwrap();
        listed.sort_by(|one, other| one.resource.cmp(&other.resource));
        assert_eq!(names(&listed), [own.as_str(), "r", longest.as_str()]);
        let other = named(&format!("own:{}", (number + 1) % clients.len()));
        assert!(locks.inspect(&other).await.unwrap().holder.is_none());
        let token = guards[3 * number].token();
        let seen = locks.inspect(&named("r")).await.unwrap().holder.unwrap();
        assert_eq!(seen.token, token);
    }
    clients[1].force_release(&named("r")).await.unwrap();
    for (number, locks) in clients.iter().enumerate() {
        let now = locks.inspect(&named("r")).await.unwrap();
        assert_eq!(now.holder.is_none(), number == 1);
    }
}

#[tokio::test]
async fn sql_names_a_lease_with_its_prefix() {
    let database = database().await;
    let jobs = with_prefix(&database, "jobs").await;
    let guard = jobs.acquire("r").await.unwrap();
    let pool = PgPool::connect(database.url()).await.unwrap();
    for (lease, outcome) in [("jobs r", "held"), ("r", "granted"), ("mail r", "granted")] {
        let acquire = format!("select outcome from fenced.acquire('{lease}', 'h', 'a', 60000)");
        let acquire = sqlx::query_scalar::<_, String>(AssertSqlSafe(acquire));
        assert_eq!(acquire.fetch_one(&pool).await.unwrap(), outcome, "{lease}");
    }
    assert_eq!(names(&jobs.list().await.unwrap()), ["r"]);
    guard.release().await.unwrap();
    assert!(jobs.list().await.unwrap().is_empty());
}

async fn accounts(database: &PostgresDatabase, prefix: &str) -> PgFencedLocks {
    let options = ConnectOptions::from(database.url()).prefix(prefix);
    palisade::open(options).await.unwrap()
}

/// Catches: a mark with a prefix, so that each application would have a mark of its own.
#[tokio::test]
async fn a_stale_holder_in_one_database_with_a_prefix_is_refused() {
    let database = database().await;
    let accounts = accounts(&database, "jobs").await;
    let pool = accounts.store().pool().clone();
    let create = "create table accounts (balance bigint); insert into accounts values (100)";
    pool.execute(create).await.unwrap();
    accounts
        .acquire("first")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();

    let stale = accounts.acquire("account:42").await.unwrap();
    let ended = accounts.locks().force_release(stale.resource());
    ended.await.unwrap();
    let guard = accounts.acquire("account:42").await.unwrap();
    let mark = "select count(*) from fenced.high_water_mark where resource = 'account:42'";
    assert_eq!(count(&pool, mark).await, 1);
    let mut tx = guard.begin().await.unwrap();
    let update = "update accounts set balance = balance + 1";
    (&mut *tx).execute(update).await.unwrap();
    let resource = guard.resource().clone();
    tx.commit_and_release(guard).await.unwrap();
    // The lease was released by its name, with the prefix, in the message of the commit.
    let held = "select count(*) from fenced.lease where holder <> ''";
    assert_eq!(count(&pool, held).await, 0);
    assert!(
        accounts
            .locks()
            .inspect(&resource)
            .await
            .unwrap()
            .holder
            .is_none()
    );

    let refused = stale.begin().await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    assert_eq!(count(&pool, BALANCE).await, 101);
    // The control: only the fence keeps the stale holder from writing.
    pool.execute("update accounts set balance = 0")
        .await
        .unwrap();
    assert_eq!(count(&pool, BALANCE).await, 0);
}

/// Marks have no prefix, as it is documented.
#[tokio::test]
async fn two_prefixes_with_one_store_shut_each_other_out() {
    let database = database().await;
    let (jobs, mail) = (
        accounts(&database, "jobs").await,
        accounts(&database, "mail").await,
    );
    let first = jobs.acquire("account:42").await.unwrap();
    let second = mail.acquire("account:42").await.unwrap();
    assert!(first.token() < second.token());
    let refused = first.begin().await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    second.begin().await.unwrap().commit().await.unwrap();
    let other = jobs.acquire("account:43").await.unwrap();
    other.begin().await.unwrap().commit().await.unwrap();
    assert!(other.remaining().unwrap() > Duration::ZERO);
}
