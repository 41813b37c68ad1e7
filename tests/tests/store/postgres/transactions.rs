//! Isolation levels, timeouts, durability, and commits that fail.

use std::time::Duration;

use e2e::observer::until;
use fenced_jobs::Jobs;
use fenced_store::{FenceError, FencedLockError, FencedLocks, PgIsolation, PgTxOptions};
use lock_core::Ttl;
use sqlx::Executor;

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, balance, claimed, fresh, grant, high_water},
};

const LEVELS: [(PgIsolation, &str); 3] = [
    (PgIsolation::ReadCommitted, "read committed"),
    (PgIsolation::RepeatableRead, "repeatable read"),
    (PgIsolation::Serializable, "serializable"),
];

#[tokio::test]
async fn the_rule_holds_at_every_isolation_level() {
    for (level, name) in LEVELS {
        let world: PostgresServer = fresh().await;
        let options = PgTxOptions::default().isolation(level);
        let store = world.store().clone().with_options(options);
        let (old, new) = (grant("account:42", 33), grant("account:42", 34));
        store.claim(&old).await.unwrap();

        let mut tx = store.begin(&old).await.unwrap();
        let actual: String = sqlx::query_scalar("SHOW transaction_isolation")
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        assert_eq!(actual, name);
        PostgresServer::add(&mut tx, 1).await.unwrap();
        tx.commit().await.unwrap();

        store.claim(&new).await.unwrap();
        let error = store.begin(&old).await.unwrap_err();
        assert_kind!(error, Stale, "{name}");
        // The reads of the new holder are current, although the snapshot is taken at once.
        let mut tx = store.begin(&new).await.unwrap();
        assert_eq!(PostgresServer::balance(&mut tx).await, 101, "{name}");
        tx.commit().await.unwrap();
    }
}

/// A claim looks at the mark after it has waited, whatever the session's default level is. In an
/// older snapshot it would fail with a serialization error, or see an old mark.
/// Catches: a claim that decides by a snapshot from before it waited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_does_not_depend_on_the_sessions_isolation_level() {
    let world: PostgresServer = fresh().await;
    let settings = [("default_transaction_isolation", "serializable")];
    let store = world.store_with(&settings).await;
    for number in 1..=20 {
        let rivals = [
            grant("account:42", 2 * number),
            grant("account:42", 2 * number + 1),
        ];
        let (one, two) = tokio::join!(store.claim(&rivals[0]), store.claim(&rivals[1]));
        two.unwrap();
        if let Err(error) = one {
            assert_kind!(error, Stale);
        }
    }
    assert_eq!(high_water(&world, "account:42").await, Some(41));
}

/// Catches: a setting that outlives its transaction in a pooled session.
#[tokio::test]
async fn timeouts_end_with_the_transaction() {
    const SETTINGS: &str = "SELECT concat_ws(' ', current_setting('lock_timeout'),
        current_setting('idle_in_transaction_session_timeout'),
        current_setting('statement_timeout'))";
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    let options = PgTxOptions::default()
        .lock_timeout(Some(Duration::from_millis(1500)))
        .idle_timeout(Some(Duration::from_secs(7)))
        .statement_timeout(None);
    let settings = [("lock_timeout", "9s"), ("statement_timeout", "8s")];
    let store = world.store_with(&settings).await.with_options(options);
    store.claim(&grant).await.unwrap();

    let mut tx = store.begin(&grant).await.unwrap();
    let inside: String = sqlx::query_scalar(SETTINGS)
        .fetch_one(&mut *tx)
        .await
        .unwrap();
    assert_eq!(inside, "9s 7s 8s", "the lock timeout is for entering only");
    tx.commit().await.unwrap();
    let outside: String = sqlx::query_scalar(SETTINGS)
        .fetch_one(store.pool())
        .await
        .unwrap();
    assert_eq!(outside, "9s 0 8s");
}

/// The limit is the time left of a lease that is not renewed. For a lease that is renewed, it is
/// the longest time that the lease may have, if this is known.
/// Catches: an idle transaction that may hold the next holder up after its lease.
#[tokio::test]
async fn timeouts_are_no_longer_than_the_lease() {
    const IDLE: &str = "SELECT extract(epoch FROM
        current_setting('idle_in_transaction_session_timeout')::interval)::float8";
    let world: PostgresServer = fresh().await;
    let locks = palisade::connect("memory:").await.unwrap();
    let accounts = FencedLocks::new(locks, world.store().clone());
    let acquire = || accounts.acquire("account:42").ttl(Ttl::secs(4));
    let hour = Duration::from_secs(3600);
    for (acquire, at_least, at_most) in [
        (acquire().renew(false), 1.0, 4.0),
        (acquire().max_hold(Duration::from_secs(2)), 4.1, 6.0),
        (acquire().max_hold(hour), 10.0, 10.0),
        (acquire(), 10.0, 10.0),
    ] {
        let guard = acquire.await.unwrap();
        let mut tx = guard.begin().await.unwrap();
        let idle: f64 = sqlx::query_scalar(IDLE).fetch_one(&mut *tx).await.unwrap();
        assert!((at_least..=at_most).contains(&idle), "{idle} s");
        tx.rollback().await.unwrap();
        guard.release().await.unwrap();
    }
}

/// An operator has set these timeouts for a reason.
/// Catches: a limit of the operator that is loosened.
#[tokio::test]
async fn tighter_timeouts_of_the_session_stay() {
    const SETTINGS: &str = "SELECT concat_ws(' ', current_setting('statement_timeout'),
        current_setting('idle_in_transaction_session_timeout'))";
    let (world, grant) = claimed::<PostgresServer>().await;
    for (statement, idle, inside) in [
        ("1500ms", "3s", "1500ms 3s"),
        ("30s", "10s", "30s 10s"),
        ("2min", "1h", "30s 10s"),
        ("0", "0", "30s 10s"),
    ] {
        let settings = [
            ("statement_timeout", statement),
            ("idle_in_transaction_session_timeout", idle),
        ];
        let store = world.store_with(&settings).await;
        let mut tx = store.begin(&grant).await.unwrap();
        let actual: String = sqlx::query_scalar(SETTINGS)
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        assert_eq!(actual, inside);
        tx.rollback().await.unwrap();
    }
}

/// A cancel may come when the commit has been done already, so its error code proves nothing.
/// Catches: a cancelled commit that is reported as one that did not happen.
#[tokio::test]
async fn a_cancel_during_the_commit_is_unknown() {
    let (world, grant) = claimed::<PostgresServer>().await;
    world
        .store()
        .pool()
        .execute(
            "CREATE FUNCTION cancel() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION USING ERRCODE = 'query_canceled'; END $$;
             CREATE CONSTRAINT TRIGGER cancel AFTER UPDATE ON accounts
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cancel()",
        )
        .await
        .unwrap();
    let mut tx = world.store().begin(&grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    let error = tx.commit().await.unwrap_err();
    assert_kind!(error, CommitUnknown);
}

/// The next holder gets through although the older holder has an open transaction.
/// Catches: an idle timeout that is not set, or an error that does not name it.
#[tokio::test]
async fn an_idle_holder_is_ended_and_told_so() {
    let world: PostgresServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let options = PgTxOptions::default().idle_timeout(Some(Duration::from_secs(1)));
    let store = world.store().clone().with_options(options);
    store.claim(&old).await.unwrap();

    let mut tx = store.begin(&old).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    store.claim(&new).await.unwrap();
    let error: FenceError = PostgresServer::add(&mut tx, 1).await.unwrap_err();
    assert_kind!(error, Terminated);
    assert!(!error.is_fenced() && !error.is_retryable());
    assert!(tx.commit().await.is_err());
    assert_eq!(balance(&world).await, 100);
}

#[tokio::test]
async fn work_that_waits_for_longer_than_its_database_lets_it_names_the_setting() {
    let world: PostgresServer = fresh().await;
    let locks = palisade::connect("memory:").await.unwrap();
    let shop = FencedLocks::new(locks, world.store().clone());
    let short = PgTxOptions::default().idle_timeout(Some(Duration::from_millis(100)));
    let once = shop.once("report", "slot").tx_options(short);
    let ran = once.run(async |tx| {
        let session: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut **tx)
            .await?;
        until("the database has ended the session", async || {
            let there = "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $1";
            let there = sqlx::query_scalar(there).bind(session);
            there.fetch_one(world.store().pool()).await.unwrap()
        })
        .await;
        PostgresServer::add(tx, 1).await?;
        Ok::<_, FencedLockError>(())
    });
    let error = ran.await.unwrap_err().to_string();
    assert!(error.contains("PgTxOptions::idle_timeout"), "{error}");
}

/// The application may accept that its last writes are lost in a power cut. A mark must not be
/// lost.
#[tokio::test]
async fn a_claim_is_durable_in_a_session_that_is_not() {
    let world: PostgresServer = fresh().await;
    let store = world.store_with(&[("synchronous_commit", "off")]).await;
    let pool = store.pool();
    pool.execute(
        "CREATE TABLE seen (setting text);
         CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
           INSERT INTO public.seen VALUES (current_setting('synchronous_commit'));
           RETURN NULL;
         END $$;
         CREATE TRIGGER look AFTER INSERT ON fenced.high_water_mark
             FOR EACH ROW EXECUTE FUNCTION look()",
    )
    .await
    .unwrap();
    store.claim(&grant("account:42", 33)).await.unwrap();
    let seen: String = sqlx::query_scalar("SELECT setting FROM seen")
        .fetch_one(pool)
        .await
        .unwrap();
    let outside: String = sqlx::query_scalar("SHOW synchronous_commit")
        .fetch_one(pool)
        .await
        .unwrap();
    assert_eq!((seen.as_str(), outside.as_str()), ("on", "off"));
}
