//! A holder that sits in an open transaction, and the claim of the next one.

use std::time::Duration;

use e2e::{
    counted::times,
    proxy::{Fault, Proxy},
    servers::until,
};
use fenced_store::{FenceError, FencedStore, MySqlTxOptions};
use lock_core::metric::TERMINATIONS;
use metrics_util::debugging::DebuggingRecorder;
use sqlx::{Executor, MySqlPool, mysql::MySqlConnectOptions};

use crate::{
    mariadb::server::MariaDbServer,
    rule::{Harness, balance, fenced_add, fresh, grant, high_water},
};

fn one_second() -> MySqlTxOptions {
    MySqlTxOptions::default().lock_timeout(Some(Duration::from_secs(1)))
}

/// Without any right but those on its own tables.
#[tokio::test]
async fn an_older_holder_in_an_open_transaction_is_ended_and_told_so() {
    let recorder = DebuggingRecorder::new();
    let _local = metrics::set_default_local_recorder(&recorder);
    let world: MariaDbServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let store = world.store_of_user("").await.with_options(one_second());
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    MariaDbServer::add(&mut tx, 1).await.unwrap();

    store.claim(&new).await.unwrap();
    let error: FenceError = MariaDbServer::add(&mut tx, 1).await.unwrap_err().into();
    assert!(
        matches!(error, FenceError::Terminated { .. } | FenceError::Db { .. }),
        "{error:?}"
    );
    assert!(!error.is_fenced() && !error.is_retryable());
    assert!(tx.commit().await.is_err());
    assert_eq!(balance(&world).await, 100);
    assert_eq!(times(&recorder, &TERMINATIONS), 1);
    fenced_add(&world, &new).await.unwrap();
}

/// The order to end a session is on its way when that one goes on to its next transaction, of
/// another resource.
#[tokio::test]
async fn a_session_that_has_gone_on_is_left_alone() {
    let world: MariaDbServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let other = grant("account:43", 7);
    let holder = FencedStore::new(world.pool_of_one().await);
    holder.claim(&old).await.unwrap();
    holder.claim(&other).await.unwrap();
    let first = holder.begin(&old).await.unwrap();

    let options: MySqlConnectOptions = world.url().parse().unwrap();
    let target = format!("mysql://{}:{}", options.get_host(), options.get_port());
    let proxy = Proxy::start(&target).await;
    let url = proxy.url("mysql");
    let (_, port) = url.rsplit_once(':').unwrap();
    let pool = MySqlPool::connect_with(options.port(port.parse().unwrap())).await;
    let claimant = FencedStore::new(pool.unwrap()).with_options(one_second());
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
    MariaDbServer::add(&mut next, 1).await.unwrap();
    next.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// Sessions that are in a transaction of another resource, or none of ours.
#[tokio::test]
async fn nobody_else_is_ended() {
    let world: MariaDbServer = fresh().await;
    let store = world.store().clone().with_options(one_second());
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let (other, live) = (grant("account:43", 7), grant("account:42", 35));
    store.claim(&old).await.unwrap();
    store.claim(&other).await.unwrap();

    let tx = store.begin(&old).await.unwrap();
    let bystander = store.begin(&other).await.unwrap();
    let unfenced = store.pool().begin().await.unwrap();
    store.claim(&new).await.unwrap();
    assert!(tx.commit().await.is_err());
    bystander.commit().await.unwrap();
    unfenced.commit().await.unwrap();

    // A claim that is refused ends nobody, nor does one that is repeated.
    let tx = store.begin(&new).await.unwrap();
    assert!(store.claim(&old).await.unwrap_err().is_fenced());
    let busy = store.claim(&new).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    tx.commit().await.unwrap();
    store.claim(&live).await.unwrap();
}

/// Behind a seal that does not end, a claim waits for the issuer and not for the older holder, who
/// might be about to commit.
#[tokio::test]
async fn a_claim_that_waits_behind_a_seal_ends_nobody() {
    let world: MariaDbServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let store = world.store().clone().with_options(one_second());
    store.claim(&old).await.unwrap();
    let mut open = store.begin(&old).await.unwrap();
    let mut seal = store.pool().begin().await.unwrap();
    seal.execute("UPDATE fenced_lock_service SET name = 'etcd' WHERE name = 'redis'")
        .await
        .unwrap();
    let busy = store.claim(&new).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    seal.rollback().await.unwrap();
    MariaDbServer::add(&mut open, 1).await.unwrap();
    open.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);

    // Without the seal, the claim waits for the holder and ends it.
    let open = store.begin(&old).await.unwrap();
    store.claim(&new).await.unwrap();
    assert!(open.commit().await.is_err());
}

/// A statement that commits behind our back leaves a note that is not the note of a transaction.
#[tokio::test]
async fn a_note_that_was_left_behind_ends_nobody() {
    let world: MariaDbServer = fresh().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    tx.execute(sqlx::raw_sql("COMMIT")).await.unwrap();
    drop(tx);
    assert_eq!(notes(&pool).await, 1);
    let session = connection_id(&pool).await;

    // An unfenced transaction holds the claim up, in that session, of all.
    let mut unfenced = pool.begin().await.unwrap();
    unfenced
        .execute("SELECT * FROM fenced_high_water_mark LOCK IN SHARE MODE")
        .await
        .unwrap();
    let other = world.store().clone().with_options(one_second());
    let busy = other.claim(&new).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    unfenced.commit().await.unwrap();
    assert_eq!(connection_id(&pool).await, session);

    // The next transaction of the session clears it away.
    store.begin(&old).await.unwrap().commit().await.unwrap();
    assert_eq!(notes(&pool).await, 0);
}

/// A stopped client of another database user can be ended by an administrator only.
#[tokio::test]
async fn a_session_of_another_user_needs_a_right_to_be_ended() {
    let world: MariaDbServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
    let mut tx = world.store().begin(&old).await.unwrap();
    MariaDbServer::add(&mut tx, 1).await.unwrap();

    let without = world.store_of_user("").await.with_options(one_second());
    let busy = without.claim(&new).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    let with = world
        .store_of_user("GRANT CONNECTION ADMIN ON *.* TO")
        .await;
    with.with_options(one_second()).claim(&new).await.unwrap();
    assert!(tx.commit().await.is_err());
    assert_eq!(balance(&world).await, 100);
}

/// A timeout of the session is not lengthened, and `None` leaves it.
#[tokio::test]
async fn without_a_lock_timeout_that_of_the_session_counts() {
    let world: MariaDbServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
    let tx = world.store().begin(&old).await.unwrap();
    let options = MySqlTxOptions::default()
        .lock_timeout(None)
        .terminate_older(false);
    let store = world
        .store_after("SET SESSION innodb_lock_wait_timeout = 1")
        .await;
    let busy = store.with_options(options).claim(&new).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    tx.commit().await.unwrap();
}

/// What the documentation recommends for clients that are idle in their transactions.
#[tokio::test]
async fn an_idle_timeout_of_the_session_ends_an_idle_holder() {
    let world: MariaDbServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let store = world
        .store_after("SET SESSION idle_transaction_timeout = 1")
        .await;
    let store = store.with_options(MySqlTxOptions::default().terminate_older(false));
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    MariaDbServer::add(&mut tx, 1).await.unwrap();
    store.claim(&new).await.unwrap();
    assert!(tx.commit().await.is_err());
    assert_eq!(balance(&world).await, 100);
}

/// A lock wait that took too long rolls back its statement and keeps the transaction. A claim keeps
/// nothing.
#[tokio::test]
async fn a_claim_that_gave_up_keeps_no_lock() {
    let world: MariaDbServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let store = world.impatient().await;
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    assert!(store.claim(&new).await.unwrap_err().is_retryable());
    let others = "SELECT COUNT(*) FROM information_schema.innodb_trx t
        JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
        WHERE p.db = DATABASE() AND p.id <> CONNECTION_ID()";
    let others: i64 = sqlx::query_scalar(others)
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
