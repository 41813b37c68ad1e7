//! The calls that a role with the documented rights can make.

use lock_core::{ErrorKind, Extension, Ttl};
use sqlx::{AssertSqlSafe, PgPool};

use crate::world::{database, manager, named};

#[tokio::test]
async fn a_role_that_may_only_use_the_schema_locks_and_ends_no_other_lease() {
    assert!(Extension::ALL.contains(&Extension::ForceRelease));
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let role = format!("locker_{:016x}", rand::random::<u64>());
    let create = format!(
        "create role {role} login password 'secret'; grant usage on schema fenced to {role}"
    );
    sqlx::raw_sql(AssertSqlSafe(create))
        .execute(&pool)
        .await
        .unwrap();
    let (_, address) = database.url().split_once('@').unwrap();
    let locks = manager(&format!("postgres://{role}:secret@{address}")).await;
    let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    assert_eq!(locks.list().await.unwrap().len(), 1);
    let error = locks.force_release(&named("r")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    guard.release().await.unwrap();
    let grant = format!("grant execute on function fenced.force_release to {role}");
    sqlx::raw_sql(AssertSqlSafe(grant))
        .execute(&pool)
        .await
        .unwrap();
    let _guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    locks.force_release(&named("r")).await.unwrap();
}

/// A superuser who uses locks would run the functions of another role.
/// Catches: a superuser runs code that the owner of the schema has put in the place of ours.
#[tokio::test]
async fn a_superuser_calls_no_functions_of_another_role() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let role = format!("squatter_{:016x}", rand::random::<u64>());
    let script = format!("create role {role}; alter schema fenced owner to {role}");
    let script = sqlx::raw_sql(AssertSqlSafe(script));
    script.execute(&pool).await.unwrap();
    let error = palisade::connect(database.url()).await.unwrap_err();
    assert!(format!("{error:?}").contains(&role), "{error:?}");
}
