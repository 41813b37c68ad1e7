//! Attacks by a client that stands in a queue or waits for a lock, but never takes it.

use std::time::{Duration, Instant};

use sqlx::Executor;
use tokio::time::{interval, timeout};

use super::refusal;
use crate::{
    postgres::roles::Roles,
    rule::{Harness, assert_kind, fenced_add, grant},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A client that is not the holder asks to settle a resource with an open transaction, and waits.
/// Catches: a queue in which a stranger holds up the holder's next transaction.
#[tokio::test]
async fn a_stranger_that_settles_delays_no_holder() {
    let roles = Roles::as_documented().await;
    let store = roles.world.store();
    let own = grant("account:42", 33);
    store.claim(&own).await.unwrap();
    let open = store.begin(&own).await.unwrap();
    let app = roles.store_of("app").await;
    let attack = app
        .pool()
        .execute("SELECT fenced.settle('account:42', 33, 'stranger', 'redis')");
    let refused = timeout(PATIENCE, attack).await.expect("it is in the queue");
    assert_eq!(refusal(&refused.unwrap_err()).0, "FN002");
    fenced_add(&roles.world, &own).await.unwrap();
    open.rollback().await.unwrap();
}

/// A role that may only connect takes the lock that all claims of a resource take. Such a role can
/// take any advisory lock. docs/operations/rights.md has the remedy.
/// Catches: a claim that such a role can keep waiting, or whose resource is harmed afterwards.
#[tokio::test]
async fn a_strangers_advisory_lock_makes_a_claim_busy() {
    let roles = Roles::as_documented().await;
    roles
        .as_admin("CREATE ROLE legacy LOGIN PASSWORD 'sesame'")
        .await;
    let stranger = roles.store_of("legacy").await;
    let mut session = stranger.pool().acquire().await.unwrap();
    session
        .execute("SELECT pg_advisory_lock(hashtextextended('account:42', 4711))")
        .await
        .unwrap();
    let impatient = roles.world.impatient().await;
    let own = grant("account:42", 33);
    let busy = impatient.claim(&own).await.unwrap_err();
    assert_kind!(busy, Busy);
    assert!(busy.is_retryable());
    session
        .execute("SELECT pg_advisory_unlock_all()")
        .await
        .unwrap();
    impatient.claim(&own).await.unwrap();
    fenced_add(&roles.world, &own).await.unwrap();
}

/// The first in the queue gives a sign of life each time, and never takes the lease.
/// Catches: a resource that stays free although others wait for it.
#[tokio::test]
async fn a_first_waiter_that_takes_nothing_is_passed_over() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let acquire = |holder: &'static str, channel: &'static str| {
        let acquire = "SELECT outcome, token FROM fenced.acquire('r', $1, 'a', 60000, NULL, $2)";
        let acquire = sqlx::query_as::<_, (String, Option<i64>)>(acquire);
        acquire.bind(holder).bind(channel).fetch_one(app.pool())
    };
    let (_, token) = acquire("holder", "").await.unwrap();
    assert_eq!(acquire("idler", "c").await.unwrap().0, "waiting");
    assert_eq!(acquire("next", "").await.unwrap().0, "waiting");
    sqlx::query("SELECT fenced.release('r', $1, 'holder')")
        .bind(token)
        .execute(app.pool())
        .await
        .unwrap();
    let freed = Instant::now();
    let mut ticks = interval(Duration::from_millis(200));
    let next = async {
        loop {
            ticks.tick().await;
            let look = "SELECT turn FROM fenced.look('c', '{a}')";
            let turn: Option<bool> = sqlx::query_scalar(look)
                .fetch_optional(app.pool())
                .await
                .unwrap();
            let (outcome, _) = acquire("next", "").await.unwrap();
            if outcome == "granted" {
                return turn;
            }
            assert_eq!(outcome, "waiting");
            // It was the attacker's turn, and the turn was not taken away at once.
            assert_eq!(turn, Some(true));
        }
    };
    timeout(PATIENCE, next)
        .await
        .expect("a free resource is kept for one that takes nothing");
    assert!(freed.elapsed() > Duration::from_millis(2500));
}
