//! The floor of a file, which any client may write, and the leases in it.

use std::time::Duration;

use fenced_store::{Forget, SqliteFencedStore};
use lock_core::{InitialToken, ResourceName, backend::Runtime, backend::TokioRuntime};
use sqlx::{AssertSqlSafe, Executor};

use crate::{
    file::SqliteFile,
    rule::{Harness, fresh, grant, high_water},
};

const HOUR: Duration = Duration::from_secs(60 * 60);

async fn execute(store: &SqliteFencedStore, statement: &str) -> u64 {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement));
    let result = store.pool().execute(statement).await.unwrap();
    result.rows_affected()
}

/// Makes two marks that are two hours old. Returns the token of both.
async fn idle(store: &SqliteFencedStore) -> u64 {
    let at = InitialToken::clock_token(TokioRuntime.unix_time() - 2 * HOUR);
    for resource in ["held", "free"] {
        store.claim(&grant(resource, at)).await.unwrap();
    }
    let age = "UPDATE fenced_high_water_mark SET claimed_at = '2026-01-01T00:00:00.000Z'";
    assert_eq!(execute(store, age).await, 2);
    at
}

/// A client in another language, or the lock service in the same file, claims by a statement of its
/// own.
/// Catches: a token below the floor that is claimed without the library.
#[tokio::test]
async fn no_statement_brings_a_token_below_the_floor_back() {
    let world: SqliteFile = fresh().await;
    let store = world.store();
    let at = idle(store).await;
    store.forget_marks(&Forget::older_than(HOUR)).await.unwrap();
    let claim = async |token: u64| {
        let claim = format!(
            "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
             VALUES ('free', {token}, '{}', 'redis')
             ON CONFLICT (resource) DO UPDATE SET token = excluded.token
               WHERE excluded.token > token",
            "0".repeat(64)
        );
        execute(store, &claim).await
    };
    assert_eq!(claim(at).await, 0);
    assert_eq!(high_water(&world, "free").await, None);
    assert_eq!(claim(at + 1).await, 1);
    assert_eq!(claim(at + 2).await, 1);
    assert_eq!(high_water(&world, "free").await, Some(at + 2));
}

#[tokio::test]
async fn a_mark_whose_lease_lives_in_the_file_stays() {
    let world: SqliteFile = fresh().await;
    let store = world.store();
    idle(store).await;
    let leases = "CREATE TABLE fenced_lease (resource TEXT, holder TEXT, expires_at INTEGER);
        INSERT INTO fenced_lease VALUES ('jobs held', 'h', 9000000000000000), ('free', 'h', 1)";
    execute(store, leases).await;
    let order = Forget::older_than(HOUR);
    assert_eq!(store.forget_marks(&order).await.unwrap().marks, 1);
    let held = ResourceName::new("held").unwrap();
    assert!(store.high_water(&held).await.unwrap().is_some());
    execute(store, "UPDATE fenced_lease SET expires_at = 1").await;
    assert_eq!(store.forget_marks(&order).await.unwrap().marks, 1);
}
