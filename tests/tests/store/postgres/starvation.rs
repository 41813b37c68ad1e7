//! A claim while many connections of the older holder, alive or deposed, begin one transaction
//! after the other. And a seal while many connections claim.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use e2e::servers::until;
use fenced_store::{PgFencedStore, PgTxOptions};
use sqlx::{AssertSqlSafe, Executor, PgPool, Postgres, SqlSafeStr, Transaction};
use tokio::task::JoinSet;

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, claimed, fresh, grant, hand_over, service},
};

const CONNECTIONS: u64 = 16;

/// How long each transaction of the older holder lasts.
const TRANSACTION: Duration = Duration::from_millis(20);

/// How many transactions may begin while a claim queues: those that were about to begin, multiplied
/// because the machine is busy with other tests. A claim without its place in the queue would be
/// overtaken by thousands.
const A_FEW: u64 = 20 * CONNECTIONS;

/// A time limit for an operation that does not wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Counts the transactions that have begun.
type Begun = Arc<AtomicU64>;

/// Waits until all connections are at work.
async fn until_busy(begun: &Begun) {
    until("all connections have begun transactions", async || {
        begun.load(Ordering::Relaxed) > 2 * CONNECTIONS
    })
    .await;
}

/// Does the work, and counts the transactions that began while it was queueing for the lock that
/// this SQL names.
async fn overtaking(
    work: impl Future<Output = ()>,
    lock: &str,
    pool: &PgPool,
    begun: &Begun,
) -> u64 {
    let queueing = AssertSqlSafe(format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' \
         AND (classid::bigint << 32 | objid::bigint) = {lock}"
    ))
    .into_sql_str();
    let mut work = pin!(work);
    let before_it_was_sent = begun.load(Ordering::Relaxed);
    let queued = async {
        loop {
            let count = sqlx::query_scalar::<_, i64>(queueing.clone());
            if count.fetch_one(pool).await.unwrap() > 0 {
                return begun.load(Ordering::Relaxed);
            }
        }
    };
    let before = tokio::select! {
        biased;
        () = &mut work => return begun.load(Ordering::Relaxed) - before_it_was_sent,
        before = queued => before,
    };
    work.await;
    begun.load(Ordering::Relaxed) - before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_connections_of_the_older_holder_do_not_hold_a_claim_up() {
    let world: PostgresServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let patient = PgTxOptions::default()
        .lock_timeout(Some(Duration::from_secs(60)))
        .terminate_older(false);
    let store: PgFencedStore = world.store_of_many().await.with_options(patient);
    store.claim(&old).await.unwrap();

    let begun = Begun::default();
    let mut older = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (store, old, begun) = (store.clone(), old.clone(), Arc::clone(&begun));
        older.spawn(async move {
            // Ends when begin fails because the token is stale.
            while let Ok(tx) = store.begin(&old).await {
                begun.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(TRANSACTION).await;
                tx.commit().await.unwrap();
            }
        });
    }
    until_busy(&begun).await;
    let claim = async { world.store().claim(&new).await.unwrap() };
    let (lock, pool) = (
        "fenced.resource_lock_key('account:42')",
        world.store().pool(),
    );
    let overtaken = overtaking(claim, lock, pool, &begun).await;
    assert!(overtaken <= A_FEW, "{overtaken} transactions came first");
    assert_eq!(older.join_all().await.len() as u64, CONNECTIONS);
}

/// The control: with FOR SHARE alone, later transactions overtake.
#[tokio::test]
async fn naive_claim_of_a_row_that_is_share_locked_waits_for_ever() {
    let (world, _) = claimed::<PostgresServer>().await;
    let share = "SELECT FROM fenced.high_water_mark WHERE token = 33 FOR SHARE";
    let naive = "UPDATE fenced.high_water_mark SET token = 34 WHERE token = 33";
    assert_overtaken(world.store().pool(), share, naive).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_claims_do_not_hold_a_seal_up() {
    let (world, _) = claimed::<PostgresServer>().await;
    let pool = world.store_of_many().await.pool().clone();
    let begun = Begun::default();
    let mut claims = JoinSet::new();
    for resource in 0..CONNECTIONS {
        claims.spawn(claim_after_claim(
            pool.clone(),
            resource,
            Arc::clone(&begun),
        ));
    }
    until_busy(&begun).await;
    let etcd = service("etcd");
    let patient = PgTxOptions::default().lock_timeout(Some(Duration::from_secs(60)));
    let store = world.store().clone().with_options(patient);
    let seal = async {
        hand_over(&store, "redis", &etcd).await;
    };
    let (lock, pool) = ("fenced.lock_service_key()", world.store().pool());
    let overtaken = overtaking(seal, lock, pool, &begun).await;
    assert!(overtaken <= A_FEW, "{overtaken} claims came first");
    // In the end each claim was refused, because its lock service is no longer the issuer.
    for code in claims.join_all().await {
        assert_eq!(code, "FN004");
    }
}

/// The control: with FOR SHARE alone, later transactions overtake.
#[tokio::test]
async fn naive_seal_of_an_issuer_that_is_share_locked_waits_for_ever() {
    let (world, _) = claimed::<PostgresServer>().await;
    let share = "SELECT FROM fenced.lock_service FOR SHARE";
    let naive = "UPDATE fenced.lock_service SET name = 'etcd'";
    assert_overtaken(world.store().pool(), share, naive).await;
}

/// Claims one token after the other, each in a transaction that lasts, until it is refused.
async fn claim_after_claim(pool: PgPool, resource: u64, begun: Begun) -> String {
    for token in 1.. {
        let claim =
            format!("SELECT fenced.claim('claimed:{resource}', {token}, 'holder', 'redis')");
        let mut tx = pool.begin().await.unwrap();
        if let Err(error) = tx.execute(AssertSqlSafe(claim)).await {
            let error = error.into_database_error().unwrap();
            return error.code().unwrap().into_owned();
        }
        begun.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(TRANSACTION).await;
        tx.commit().await.unwrap();
    }
    unreachable!("tokens do not end")
}

/// Sends a statement that needs an exclusive lock on a row. Then transactions share the row again
/// and again, each time before the last transaction that shares it is done. The statement gets
/// through only when the sharing stops.
async fn assert_overtaken(pool: &PgPool, share: &'static str, naive: &'static str) {
    let mut sharer = sharing(pool, share).await;
    let alone = pool.clone();
    let naive = async move { sqlx::raw_sql(naive).execute(&alone).await.unwrap() };
    let mut naive = JoinSet::from_iter([naive]);
    until("it waits for the row", async || {
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let waiting = sqlx::query_scalar::<_, i64>(waiting);
        waiting.fetch_one(pool).await.unwrap() > 0
    })
    .await;
    for _ in 0..A_FEW {
        let next = sharing(pool, share).await;
        sharer.commit().await.unwrap();
        sharer = next;
    }
    assert!(naive.try_join_next().is_none(), "the trap is gone");
    sharer.commit().await.unwrap();
    assert_eq!(naive.join_next().await.unwrap().unwrap().rows_affected(), 1);
}

/// A version of `enter` and of a claim without that lock.
async fn sharing(pool: &PgPool, share: &'static str) -> Transaction<'static, Postgres> {
    let shared = async {
        let mut tx = pool.begin().await.unwrap();
        tx.execute(share).await.unwrap();
        tx
    };
    let shared = tokio::time::timeout(PATIENCE, shared).await;
    shared.expect("the trap is gone: a transaction that shares the row waits, too")
}
