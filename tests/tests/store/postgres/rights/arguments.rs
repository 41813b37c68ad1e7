//! Attacks by the arguments of a caller: too long, too short, or unreadable later.

use sqlx::{AssertSqlSafe, Executor};

use super::refusal;
use crate::{
    postgres::roles::Roles,
    rule::{Harness, grant},
};

const CHECKED: &str = "23514";

/// Calls of an application, and the constraint that refuses each.
const HOSTILE: &[(&str, &str)] = &[
    (
        "acquire('now three words', 'h', 'a', 1000)",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    (
        "acquire(NULL, 'h', 'a', 1000)",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    (
        "acquire(E'r\\n', 'h', 'a', 1000)",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    (
        "acquire(repeat('r', 257), 'h', 'a', 1000)",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    ("acquire('r', '', 'a', 1000)", "holder_has_1_to_256_bytes"),
    ("acquire('r', NULL, 'a', 1000)", "holder_has_1_to_256_bytes"),
    (
        "acquire('r', repeat(md5('x'), 100), 'a', 1000)",
        "holder_has_1_to_256_bytes",
    ),
    ("acquire('r', 'h', '', 1000)", "attempt_has_1_to_256_bytes"),
    (
        "acquire('r', 'h', NULL, 1000)",
        "attempt_has_1_to_256_bytes",
    ),
    (
        "acquire('r', 'h', repeat('a', 257), 1000)",
        "attempt_has_1_to_256_bytes",
    ),
    ("acquire('r', 'h', 'a', 0)", "ttl_is_10_ms_to_24_hours"),
    ("acquire('r', 'h', 'a', -1)", "ttl_is_10_ms_to_24_hours"),
    ("acquire('r', 'h', 'a', NULL)", "ttl_is_10_ms_to_24_hours"),
    (
        "acquire('r', 'h', 'a', 3155760000000)",
        "ttl_is_10_ms_to_24_hours",
    ),
    (
        "acquire('r', 'h', 'a', 9223372036854775807)",
        "ttl_is_10_ms_to_24_hours",
    ),
    ("acquire('r', 'h', 'a', 1000, -1)", "wait_is_0_to_100_years"),
    (
        "acquire('r', 'h', 'a', 1000, 9223372036854775807)",
        "wait_is_0_to_100_years",
    ),
    (
        "acquire('r', 'h', 'a', 1000, 0, repeat('c', 64))",
        "channel_has_at_most_63_visible_ascii_characters",
    ),
    (
        "acquire('r', 'h', 'a', 1000, 0, NULL)",
        "channel_has_at_most_63_visible_ascii_characters",
    ),
    (
        "acquire('r', 'h', 'a', 1000, 0, E'c\\n')",
        "channel_has_at_most_63_visible_ascii_characters",
    ),
    (
        "acquire('r', 'h', 'a', 1000, at_least => -1)",
        "floor_is_0_to_999999999999999",
    ),
    (
        "acquire('r', 'h', 'a', 1000, at_least => NULL)",
        "floor_is_0_to_999999999999999",
    ),
    (
        "acquire('r', 'h', 'a', 1000, max_waiters => -1)",
        "max_waiters_is_not_negative",
    ),
    (
        "acquire('r', 'h', 'a', 1000, metadata => repeat('m', 1025))",
        "metadata_has_at_most_1024_bytes",
    ),
    (
        "acquire('r', 'h', 'a', 1000, metadata => E'a\\nb')",
        "metadata_has_no_control_characters",
    ),
    ("cancel('r', '', 'a')", "holder_has_1_to_256_bytes"),
    ("cancel('r', 'h', '')", "attempt_has_1_to_256_bytes"),
    (
        "cancel('', 'h', 'a')",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    ("release('r', 1, '')", "holder_has_1_to_256_bytes"),
    (
        "release_hold('r', 1, repeat('h', 257), 'a')",
        "holder_has_1_to_256_bytes",
    ),
    (
        "renew('{r}', '{1}', '{h}', '{0}')",
        "ttl_is_10_ms_to_24_hours",
    ),
    (
        "renew('{r}', '{1}', '{NULL}', '{1000}')",
        "holder_has_1_to_256_bytes",
    ),
    (
        "claim('a b', 1, 'h', 'redis')",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    (
        "claim('r', 0, 'h', 'redis')",
        "token_is_1_to_999999999999999",
    ),
    (
        "claim('r', 1000000000000000, 'h', 'redis')",
        "token_is_1_to_999999999999999",
    ),
    ("claim('r', 1, '', 'redis')", "holder_has_1_to_256_bytes"),
    (
        "claim('r', 1, 'h', 'a b')",
        "issuer_has_1_to_64_letters_digits_or_marks",
    ),
    (
        "acquire_together('{a b c}', 'h', 'a', '{1000}', '{0}', '{NULL}')",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    (
        "acquire_together('{a/ b}', 'h', 'a', '{1000}', '{0}', '{NULL}')",
        "prefix_has_1_to_64_letters_digits_or_marks",
    ),
    (
        "acquire(' b', 'h', 'a', 1000)",
        "prefix_has_1_to_64_letters_digits_or_marks",
    ),
    (
        "acquire('p ' || repeat('r', 257), 'h', 'a', 1000)",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    (
        "acquire_together('{NULL}', 'h', 'a', '{1000}', '{0}', '{NULL}')",
        "resource_has_1_to_256_visible_ascii_characters",
    ),
    (
        "acquire_together('{r}', '', 'a', '{1000}', '{0}', '{NULL}')",
        "holder_has_1_to_256_bytes",
    ),
    (
        "acquire_together('{r}', 'h', 'a', '{1}', '{0}', '{NULL}')",
        "ttl_is_10_ms_to_24_hours",
    ),
    (
        "acquire_together('{r}', 'h', 'a', '{1000}', '{-1}', '{NULL}')",
        "floor_is_0_to_999999999999999",
    ),
    (
        "state_longest_hold('367 days')",
        "longest_hold_is_1_hour_to_366_days",
    ),
    (
        "state_longest_hold(NULL)",
        "longest_hold_is_1_hour_to_366_days",
    ),
    (
        "acquire_together('{r}', 'h', 'a', '{1000}', '{0}', ARRAY[E'\\n'])",
        "metadata_has_no_control_characters",
    ),
];

/// Catches: an argument without a bound, or a refusal that leaves a row or a lock behind.
#[tokio::test]
async fn an_argument_out_of_bounds_is_refused_by_name_and_leaves_nothing() {
    let roles = Roles::as_documented().await;
    roles
        .as_admin("GRANT EXECUTE ON FUNCTION fenced.state_longest_hold TO app")
        .await;
    let app = roles.store_of("app").await;
    for (call, constraint) in HOSTILE {
        let select = AssertSqlSafe(format!("SELECT fenced.{call}"));
        let error = app.pool().execute(select).await.unwrap_err();
        let (code, named) = refusal(&error);
        assert_eq!(
            (code.as_str(), named.as_str()),
            (CHECKED, *constraint),
            "{call}: {error}"
        );
    }
    for call in [
        "SELECT fenced.renew('{}', '{}', '{}', '{}')",
        "SELECT fenced.renew('{r,q}', '{1}', '{h}', '{1000}')",
        "SELECT fenced.renew(array_fill('r'::text, '{1001}'), array_fill(1::bigint, '{1001}'),
           array_fill('h'::text, '{1001}'), array_fill(1000::bigint, '{1001}'))",
        "SELECT fenced.acquire_together('{r,q}', 'h', 'a', '{1000}', '{0}', '{NULL}')",
        "SELECT fenced.acquire_together(NULL, 'h', 'a', '{1000}', '{0}', '{NULL}')",
        "SELECT fenced.acquire_together(array_fill('r'::text, '{65}'), 'h', 'a',
           array_fill(1000::bigint, '{65}'), array_fill(0::bigint, '{65}'),
           array_fill(NULL::text, '{65}'))",
    ] {
        let error = app.pool().execute(call).await.unwrap_err();
        assert_eq!(refusal(&error).0, "2202E", "{call}: {error}");
    }
    let admin = roles.world.store().pool();
    for table in ["lease", "waiter", "tombstone", "high_water_mark"] {
        let count = AssertSqlSafe(format!("SELECT count(*) FROM fenced.{table}"));
        let rows: i64 = sqlx::query_scalar(count).fetch_one(admin).await.unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    // The greatest and the least arguments that are in bounds.
    for call in [
        "SELECT fenced.acquire(repeat('r', 256), repeat('h', 256), repeat('a', 256), 86400000,
           3155760000000, repeat('c', 63), 0, repeat('m', 1024), 0)",
        "SELECT fenced.acquire('r', 'h', 'a', 10)",
    ] {
        app.pool().execute(call).await.unwrap();
    }
}

/// Arguments that only a waiter needs. A free lease is granted without a look at them.
const OF_WAITERS: [&str; 3] = [
    "wait_is_0_to_100_years",
    "channel_has_at_most_63_visible_ascii_characters",
    "max_waiters_is_not_negative",
];

/// Catches: a short way that stores an argument which the long way refuses.
#[tokio::test]
async fn an_argument_out_of_bounds_changes_no_lease_that_is_free() {
    const ROW: &str = "SELECT l::text FROM fenced.lease l WHERE resource = 'r'";
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let free = "SELECT fenced.release('r', token, 'h', false)
                FROM fenced.acquire('r', 'h', 'a', 1000)";
    app.pool().execute(free).await.unwrap();
    let admin = roles.world.store().pool();
    let row: String = sqlx::query_scalar(ROW).fetch_one(admin).await.unwrap();
    let of_free = |(call, constraint): &&(&str, &str)| {
        call.starts_with("acquire('r',") && !OF_WAITERS.contains(constraint)
    };
    let calls: Vec<_> = HOSTILE.iter().filter(of_free).collect();
    assert!(calls.len() > 10, "{calls:?}");
    for (call, constraint) in calls {
        let select = AssertSqlSafe(format!("SELECT fenced.{call}"));
        let error = app.pool().execute(select).await.unwrap_err();
        let (code, named) = refusal(&error);
        assert_eq!((&*code, &*named), (CHECKED, *constraint), "{call}");
        let after: String = sqlx::query_scalar(ROW).fetch_one(admin).await.unwrap();
        assert_eq!(after, row, "{call}");
    }
}

/// Under the fence of its job a role may write any text there, within bounds.
/// Catches: a row of a job without bounds.
#[tokio::test]
async fn a_job_keeps_what_is_in_bounds() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let own = grant("job:j", 5);
    app.claim(&own).await.unwrap();
    for (call, constraint) in [
        (
            "save_job('j', 'two words', 1, '')",
            "slot_has_1_to_256_visible_ascii_characters",
        ),
        (
            "save_job('j', NULL, 1, '')",
            "slot_has_1_to_256_visible_ascii_characters",
        ),
        ("save_job('j', 's', -1, '')", "steps_are_not_negative"),
        (
            "save_job('j', 's', 1, repeat('p', 1048577))",
            "progress_has_at_most_1_mib",
        ),
        (
            "fail_job('j', 's', repeat('e', 10001), 1)",
            "error_has_at_most_10000_bytes",
        ),
        ("fail_job('j', 's', 'e', -1)", "back_off_is_0_to_100_years"),
        (
            "fail_job('j', 's', 'e', 9223372036854775807)",
            "back_off_is_0_to_100_years",
        ),
        (
            "run_job('j', E's\\n')",
            "slot_has_1_to_256_visible_ascii_characters",
        ),
    ] {
        let mut tx = app.begin(&own).await.unwrap();
        let call = AssertSqlSafe(format!("SELECT fenced.{call}"));
        let error = tx.execute(call).await.unwrap_err();
        let (code, named) = refusal(&error);
        assert_eq!(
            (code.as_str(), named.as_str()),
            (CHECKED, constraint),
            "{error}"
        );
        tx.rollback().await.unwrap();
    }
}

/// Catches: future slots that are forgotten, and so never run.
#[tokio::test]
async fn slots_are_forgotten_below_a_time_that_is_past() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let own = grant("job:j", 5);
    app.claim(&own).await.unwrap();
    for below in ["'z'", "'9999-99-99T99:99:99Z'", "''", "NULL"] {
        let mut tx = app.begin(&own).await.unwrap();
        let call = AssertSqlSafe(format!(
            "SELECT fenced.forget_jobs_below('j', {below}, true)"
        ));
        let error = tx.execute(call).await.unwrap_err();
        assert_eq!(refusal(&error).0, "22023", "{below}: {error}");
        tx.rollback().await.unwrap();
    }
    let mut tx = app.begin(&own).await.unwrap();
    let call = "SELECT fenced.forget_jobs_below('j', '9999-12-31T00:00:00Z', true)";
    tx.execute(call).await.unwrap();
    let run = "SELECT state FROM fenced.run_job('j', '2999-01-01T00:00:00Z')";
    let state: String = sqlx::query_scalar(run).fetch_one(&mut *tx).await.unwrap();
    assert_eq!(state, "due");
    tx.commit().await.unwrap();
}

/// Catches: a release by force whose answer an application has prepared before.
#[tokio::test]
async fn a_cancel_does_not_answer_a_release_by_force() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let acquire = "SELECT token FROM fenced.acquire('r', 'h', 'a', 60000)";
    let token: i64 = sqlx::query_scalar(acquire)
        .fetch_one(app.pool())
        .await
        .unwrap();
    for holder in ["force", "forced_release"] {
        sqlx::query("SELECT fenced.cancel('r', $1, $2::bigint::text)")
            .bind(holder)
            .bind(token)
            .execute(app.pool())
            .await
            .unwrap();
    }
    let force = "SELECT outcome, revocation FROM fenced.force_release('r', $1)";
    let (outcome, revocation): (String, i64) = sqlx::query_as(force)
        .bind(token)
        .fetch_one(roles.world.store().pool())
        .await
        .unwrap();
    assert_eq!((outcome.as_str(), revocation > token), ("ended", true));
    let held: i64 = sqlx::query_scalar("SELECT count(*) FROM fenced.leases('r')")
        .fetch_one(app.pool())
        .await
        .unwrap();
    assert_eq!(held, 0);
}

/// Catches: names that are made up for each request, and whose rows stay for ever.
#[tokio::test]
async fn a_cancel_of_a_name_that_was_never_held_leaves_no_row_of_it() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    app.pool()
        .execute("SELECT fenced.cancel('made-up', 'h', 'a'), fenced.release('made-up', 1, 'h')")
        .await
        .unwrap();
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM fenced.lease")
        .fetch_one(roles.world.store().pool())
        .await
        .unwrap();
    assert_eq!(rows, 0);
}
