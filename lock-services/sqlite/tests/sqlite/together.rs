//! Several leases at once. A refusal of the last lease comes after the first was decided.

use lock_core::{
    ErrorKind, Holder, ResourceName, Ttl,
    backend::{AcquireRequest, AttemptRef, LockBackend as _, LockBackendExt as _, TokioRuntime},
};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::world::{Folder, connect};

fn request(resource: &str, holder: Holder) -> AcquireRequest {
    let resource = ResourceName::new(resource).unwrap();
    let attempt = AttemptRef::new(&TokioRuntime, resource, holder);
    AcquireRequest::new(attempt, Ttl::secs(60))
}

/// Acquires both resources after these statements, and expects that the second is refused.
async fn refused_after(statements: &str) -> ErrorKind {
    let folder = Folder::new();
    let (backend, pool) = (connect(folder.url()).await, folder.pool().await);
    let holder = Holder::random();
    let second = request("second", holder);
    let earlier = backend.acquire(&second).await.unwrap().granted();
    earlier.unwrap();
    let statements = sqlx::raw_sql(AssertSqlSafe(statements));
    pool.execute(statements).await.unwrap();

    let mut both = [request("first", holder), second];
    both[1].attempt.id = both[0].attempt.id;
    let refused = backend.acquire_together(&both).await.unwrap_err();
    let first = backend.inspect(&both[0].attempt.resource).await.unwrap();
    assert!(first.holder.is_none(), "{first:?}");
    refused.kind()
}

/// Catches: some of several leases stay granted.
#[tokio::test]
async fn a_refusal_of_one_lease_grants_none_of_the_others() {
    const FULL: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)
         UPDATE fenced_lease SET attempts = (SELECT group_concat('a' || i, ' ') FROM n)";
    const EXHAUSTED: &str = "DELETE FROM fenced_lease;
         INSERT INTO fenced_lease (resource, token, holder, expires_at, attempts)
         VALUES ('first', 1, '', 0, '');
         UPDATE fenced_lease_floor SET token = 999999999999999";
    assert_eq!(refused_after(FULL).await, ErrorKind::QueueFull);
    assert_eq!(refused_after(EXHAUSTED).await, ErrorKind::TokensExhausted);
}
