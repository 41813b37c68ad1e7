//! The row of a lease says whether the lease has no waiters and no tombstones. The short path of an
//! acquire relies on that.

use sqlx::{AssertSqlSafe, PgPool};

use crate::world::{count, database};

/// Calls with a resource, a holder, an attempt and the token of the present lease, and statements
/// that stand for the effects of time on the tables.
const STEPS: &[&str] = &[
    "select fenced.acquire('{r}', '{h}', '{a}', 60000)",
    "select fenced.acquire('{r}', '{h}', '{a}', 60000)",
    "select fenced.acquire('{r}', '{h}', '{a}', 60000, 60000)",
    "select fenced.acquire('{r}', '{h}', '{a}', 60000, metadata => 'note')",
    "select fenced.acquire_together('{q,r}', '{h}', '{a}', '{10,10}', '{0,0}', '{null,null}')",
    "select fenced.release('{r}', {token}, '{h}', false)",
    "select fenced.release('{r}', {token}, '{h}', false)",
    "select fenced.release('{r}', {token}, '{h}')",
    "select fenced.release_hold('{r}', {token}, '{h}', '{a}')",
    "select fenced.cancel('{r}', '{h}', '{a}')",
    "select fenced.force_release('{r}', {token})",
    "update fenced.lease set expires_at = now() where resource = '{r}' and holder <> ''",
    "update fenced.waiter set seen_at = '2000-01-01' where resource = '{r}'",
    "update fenced.tombstone set minute = minute - 2; select fenced.forget_tombstones()",
    "select fenced.forget_tombstones()",
];

const UNTRUE: &str = "select count(*) from fenced.lease l where is_quiet
    and (exists (select from fenced.waiter w where w.resource = l.resource)
         or exists (select from fenced.tombstone t where t.resource = l.resource))";
const QUIET: &str = "select count(*) from fenced.lease where is_quiet";

/// Catches: a call that leaves a waiter or a tombstone, but does not say so in the row.
#[tokio::test]
async fn a_row_is_quiet_only_without_waiters_and_tombstones() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let mut chosen = 1_u64;
    let mut choose = |names: &[&'static str]| -> &'static str {
        // Knuth's generator of random numbers gives the same calls in each run.
        chosen = chosen
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        names[usize::try_from(chosen >> 33).unwrap() % names.len()]
    };
    let mut quiet = 0;
    for number in 0..2000 {
        let (step, resource) = (choose(STEPS), choose(&["q", "r"]));
        let token = format!("(select token from fenced.lease where resource = '{resource}')");
        let call = step
            .replace("{r}", resource)
            .replace("{h}", choose(&["a", "b", "c"]))
            .replace("{a}", choose(&["1", "2"]))
            .replace("{token}", &token);
        let made = sqlx::raw_sql(AssertSqlSafe(call.clone()))
            .execute(&pool)
            .await;
        assert!(made.is_ok(), "{number}: {call}: {made:?}");
        assert_eq!(count(&pool, UNTRUE).await, 0, "{number}: {call}");
        quiet += count(&pool, QUIET).await;
    }
    assert!((200..3800).contains(&quiet), "{quiet}");
}
