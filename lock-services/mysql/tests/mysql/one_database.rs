//! One database as lock service and store, which claims a grant in the step that makes it. Also
//! prefixes.

use std::time::Duration;

use e2e::servers::{MySqlDatabase, MySqlServer};
use fenced_store::{FenceError, FencedLocks, MySqlFencedLocks, MySqlFencedStore};
use lock_core::{Attempt, LockManager, Ttl};
use sqlx::{
    AssertSqlSafe, Executor, MySqlConnection, MySqlPool, Row as _, mysql::MySqlPoolOptions,
};

use crate::world::{count, database_of, manager, named, on_each_server};

const TTL: Ttl = Ttl::secs(60);
const PATIENCE: Duration = Duration::from_secs(30);

async fn accounts(database: &MySqlDatabase) -> MySqlFencedLocks {
    // MySQL has no limit for a single statement, and this limit is 50 s by default.
    let options = MySqlPoolOptions::new().after_connect(|connection, _| {
        let limit = connection.execute("SET innodb_lock_wait_timeout = 1");
        Box::pin(async { limit.await.map(drop) })
    });
    let pool = options.connect(database.url()).await.unwrap();
    let table = "CREATE TABLE accounts (id INT PRIMARY KEY, balance INT);
        INSERT INTO accounts VALUES (1, 100)";
    pool.execute(sqlx::raw_sql(table)).await.unwrap();
    palisade::open(pool).await.unwrap()
}

/// Whether a call that asks for a claim says that it has claimed.
async fn claims(session: &mut MySqlConnection, resource: &str, holder: &str) -> bool {
    let call = format!(
        "CALL fenced_acquire('{resource}', '{holder}', 'a', 60000, 0, 'c', 0, NULL, NULL, NULL,
           'mysql')"
    );
    let row = session
        .fetch_one(sqlx::raw_sql(AssertSqlSafe(call)))
        .await
        .unwrap();
    let outcome: String = row.try_get_unchecked("outcome").unwrap();
    assert_eq!(outcome, "granted");
    row.try_get_unchecked::<i64, _>("claimed").unwrap() != 0
}

async fn claim_count(pool: &MySqlPool) -> i64 {
    count(pool, "SELECT COUNT(*) FROM fenced_high_water_mark").await
}

async fn a_grant_is_claimed_in_the_same_step<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let accounts = accounts(&database).await;
    let pool = accounts.store().pool();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let guard = accounts.acquire("account:1").ttl(TTL).await.unwrap();
        let mut tx = guard.begin().await.unwrap();
        let update = "UPDATE accounts SET balance = balance + 1";
        (&mut *tx).execute(update).await.unwrap();
        tokens.push(guard.token());
        tx.commit_and_release(guard).await.unwrap();
    }
    assert!(tokens[0] < tokens[1]);
    assert_eq!(
        count(pool, "SELECT CAST(balance AS SIGNED) FROM accounts").await,
        102
    );
    // These calls use the procedure alone: the first claim of a mark, a replay, the next holder.
    let mut session = pool.acquire().await.unwrap();
    session.execute("SET time_zone = '+00:00'").await.unwrap();
    assert!(claims(&mut session, "fresh", "one").await);
    assert!(claims(&mut session, "fresh", "one").await);
    assert_eq!(claim_count(pool).await, 2);
    let end = "CALL fenced_cancel('fresh', 'one', 'a')";
    session.execute(sqlx::raw_sql(end)).await.unwrap();
    assert!(claims(&mut session, "fresh", "two").await);
    // The control: a mark that is ahead of the clock is not lowered.
    let ahead =
        "UPDATE fenced_high_water_mark SET token = 999999999999998 WHERE resource = 'fresh'";
    pool.execute(ahead).await.unwrap();
    assert!(!claims(&mut session, "fresh", "two").await);
    // Nothing is claimed for another issuer.
    pool.execute("UPDATE fenced_lock_service SET name = 'redis'")
        .await
        .unwrap();
    assert!(!claims(&mut session, "other", "h").await);
    assert_eq!(claim_count(pool).await, 2);
}

/// The grant does not wait for the older transaction, but the separate claim does.
async fn a_claim_that_finds_an_older_transaction_open_is_made_apart<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let accounts = accounts(&database).await;
    let older = accounts.acquire("account:1").ttl(TTL).await.unwrap();
    let mut tx = older.begin().await.unwrap();
    let update = "UPDATE accounts SET balance = balance + 1";
    (&mut *tx).execute(update).await.unwrap();
    let ended = accounts.locks().force_release(older.resource());
    ended.await.unwrap();
    let mut session = accounts.store().pool().acquire().await.unwrap();
    session.execute("SET time_zone = '+00:00'").await.unwrap();
    assert!(!claims(&mut session, "account:1", "newer").await);
    let end = "CALL fenced_cancel('account:1', 'newer', 'a')";
    session.execute(sqlx::raw_sql(end)).await.unwrap();
    // The claim ends the older transaction when the lock timeout is over.
    let newer = accounts
        .acquire("account:1")
        .ttl(TTL)
        .wait(PATIENCE)
        .await
        .unwrap();
    tx.commit().await.unwrap_err();
    let stale = older.begin().await.unwrap_err();
    assert!(stale.is_fenced(), "{stale:?}");
    newer.begin().await.unwrap().commit().await.unwrap();
}

/// Catches: a store in one database that accepts grants of a lock service in another database.
async fn with_two_databases_nothing_is_accepted<S: MySqlServer>() {
    let (first, second) = (database_of::<S>().await, database_of::<S>().await);
    let pool = MySqlPool::connect(second.url()).await.unwrap();
    let locks = manager(first.url()).await;
    let accounts = FencedLocks::in_one_database(locks, MySqlFencedStore::new(pool));
    let guard = accounts.acquire("account:1").ttl(TTL).await.unwrap();
    let refused = guard.begin().await.unwrap_err();
    assert!(
        matches!(refused, FenceError::MarkLost { .. }),
        "{refused:?}"
    );
}

async fn with_prefix(database: &MySqlDatabase, prefix: &str) -> LockManager {
    let connecting = palisade::connect(database.url()).prefix(prefix);
    connecting.await.unwrap()
}

async fn leases_of_different_prefixes_do_not_see_each_other<S: MySqlServer>() {
    let database = database_of::<S>().await;
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
        let mut listed = locks.list().await.unwrap();
        listed.sort_by(|one, other| one.resource.cmp(&other.resource));
        let names: Vec<_> = listed.iter().map(|one| one.resource.as_str()).collect();
        assert_eq!(names, [&*format!("own:{number}"), "r", longest.as_str()]);
        let seen = locks.inspect(&named("r")).await.unwrap().holder.unwrap();
        assert_eq!(seen.token, guards[3 * number].token());
    }
    clients[1].force_release(&named("r")).await.unwrap();
    for (number, locks) in clients.iter().enumerate() {
        let now = locks.inspect(&named("r")).await.unwrap();
        assert_eq!(now.holder.is_none(), number == 1);
    }
}

on_each_server!(
    a_grant_is_claimed_in_the_same_step,
    a_claim_that_finds_an_older_transaction_open_is_made_apart,
    with_two_databases_nothing_is_accepted,
    leases_of_different_prefixes_do_not_see_each_other,
);
