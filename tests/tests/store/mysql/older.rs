//! A holder that stays in an open transaction, and the claim of the next holder.

use e2e::{
    proxy::Fault,
    servers::{MySqlServer, until},
};
use fenced_store::{FencedStore, MySqlTxOptions};
use sqlx::{AssertSqlSafe, Executor, MySqlPool};

use crate::{
    mysql::server::{MySqlStore, on, one_second},
    rule::{Harness, assert_kind, balance, claimed, fresh, grant, high_water},
    servers::Server,
};

/// The order to end a session is on its way when that session goes on to its next transaction, of
/// another resource.
async fn a_session_that_has_gone_on_is_left_alone<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let other = grant("account:43", 7);
    let holder = FencedStore::new(world.pool_of_one().await);
    holder.claim(&old).await.unwrap();
    holder.claim(&other).await.unwrap();
    let first = holder.begin(&old).await.unwrap();

    let (proxy, claimant) = world.behind_a_proxy().await;
    let claimant = claimant.with_options(one_second());
    let order = proxy.at_request("KILL CONNECTION", Fault::HoldRequests);
    let gone_on = async {
        until("the order is under way", async || order.has_sprung()).await;
        first.commit().await.unwrap();
        let next = holder.begin(&other).await.unwrap();
        proxy.let_go();
        next
    };
    let (claimed, mut next) = tokio::join!(claimant.claim(&new), gone_on);
    claimed.unwrap();
    MySqlStore::<S>::add(&mut next, 1).await.unwrap();
    next.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// A statement that commits without the store's knowledge leaves the note of a transaction that is
/// over.
async fn a_note_that_was_left_behind_ends_no_session<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    tx.execute(sqlx::raw_sql("COMMIT")).await.unwrap();
    drop(tx);
    assert_eq!(notes(&pool).await, 1);
    let session = connection_id(&pool).await;

    // An unfenced transaction in the same session holds up the claim.
    let mut unfenced = pool.begin().await.unwrap();
    unfenced
        .execute("SELECT * FROM fenced_high_water_mark LOCK IN SHARE MODE")
        .await
        .unwrap();
    let other = world.ending();
    let busy = other.claim(&new).await.unwrap_err();
    assert_kind!(busy, Busy);
    unfenced.commit().await.unwrap();
    assert_eq!(connection_id(&pool).await, session);

    // The next transaction of the session deletes the note.
    store.begin(&old).await.unwrap().commit().await.unwrap();
    assert_eq!(notes(&pool).await, 0);
}

/// Only an administrator can end the session of a stopped client of another database user.
async fn a_session_of_another_user_needs_a_right_to_be_ended<S: MySqlServer>() {
    let (world, old) = claimed::<MySqlStore<S>>().await;
    let new = grant("account:42", 34);
    // MySQL lets no other user end the session of a user with all rights.
    let plain = world.store_of_user("").await;
    let mut tx = plain.begin(&old).await.unwrap();
    MySqlStore::<S>::add(&mut tx, 1).await.unwrap();

    let without = world.store_of_user("").await.with_options(one_second());
    let busy = without.claim(&new).await.unwrap_err();
    assert_kind!(busy, Busy);
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    let with = world
        .store_of_user(on::<S, _>(
            "GRANT CONNECTION ADMIN ON *.* TO",
            "GRANT CONNECTION_ADMIN ON *.* TO",
        ))
        .await;
    with.with_options(one_second()).claim(&new).await.unwrap();
    assert!(tx.commit().await.is_err());
    assert_eq!(balance(&world).await, 100);
}

/// A timeout of the session is not lengthened, and `None` leaves it unchanged.
/// Catches: a timeout of the session that is lengthened.
async fn without_a_lock_timeout_that_of_the_session_counts<S: MySqlServer>() {
    let (world, old) = claimed::<MySqlStore<S>>().await;
    let new = grant("account:42", 34);
    let tx = world.store().begin(&old).await.unwrap();
    let options = MySqlTxOptions::default()
        .lock_timeout(None)
        .terminate_older(false);
    let store = world
        .store_after("SET SESSION innodb_lock_wait_timeout = 1")
        .await;
    let busy = store.with_options(options).claim(&new).await.unwrap_err();
    assert_kind!(busy, Busy);
    tx.commit().await.unwrap();
}

/// The setting that the documentation recommends for clients that are idle in their transactions.
async fn an_idle_timeout_of_the_session_ends_an_idle_holder<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let store = world
        .store_after(on::<S, _>(
            "SET SESSION idle_transaction_timeout = 1",
            "SET SESSION wait_timeout = 1",
        ))
        .await;
    let store = store.with_options(MySqlTxOptions::default().terminate_older(false));
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    MySqlStore::<S>::add(&mut tx, 1).await.unwrap();
    store.claim(&new).await.unwrap();
    assert!(tx.commit().await.is_err());
    assert_eq!(balance(&world).await, 100);
}

/// A lock wait that took too long rolls back its statement and keeps the transaction. A claim keeps
/// no lock.
async fn a_claim_that_gave_up_keeps_no_lock<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let store = world.impatient().await;
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    assert!(store.claim(&new).await.unwrap_err().is_retryable());
    let others = format!(
        "SELECT COUNT(*) FROM information_schema.innodb_trx t
         JOIN {} p ON p.id = t.trx_mysql_thread_id
         WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID()",
        S::SESSIONS
    );
    let others: i64 = sqlx::query_scalar(AssertSqlSafe(others))
        .fetch_one(&mut *tx)
        .await
        .unwrap();
    assert_eq!(others, 0);
    tx.commit().await.unwrap();
    store.claim(&new).await.unwrap();
}

async fn notes(pool: &MySqlPool) -> i64 {
    sqlx::query_scalar("SELECT COUNT(*) FROM fenced_open_transaction")
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn connection_id(pool: &MySqlPool) -> u64 {
    sqlx::query_scalar("SELECT CONNECTION_ID()")
        .fetch_one(pool)
        .await
        .unwrap()
}

on_both!(
    a_session_that_has_gone_on_is_left_alone,
    a_note_that_was_left_behind_ends_no_session,
    a_session_of_another_user_needs_a_right_to_be_ended,
    without_a_lock_timeout_that_of_the_session_counts,
    an_idle_timeout_of_the_session_ends_an_idle_holder,
    a_claim_that_gave_up_keeps_no_lock,
);
