//! All operations of a store, right and wrong.

use fenced_store::{Dialect, FencedLocks, FencedStore};
use sqlx::{Executor, IntoArguments};

use crate::secrets::witness::Witness;

/// Errors that every database has.
pub(crate) const KINDS: [&str; 7] = [
    "DuplicateToken",
    "MarkLost",
    "NotClaimed",
    "NotMigrated",
    "RepeatedResource",
    "Stale",
    "WrongIssuer",
];

const RESOURCE: &str = "account:42";

/// The statements that differ between databases.
pub(crate) struct Statements {
    pub(crate) delete_marks: &'static str,
    /// A statement that no database accepts.
    pub(crate) broken: &'static str,
}

const WRITE: &str = "INSERT INTO journal VALUES (1)";

/// Runs all operations in a database with a table `journal (number)`, but without our tables.
pub(crate) async fn run<DB>(store: &FencedStore<DB>, statements: &Statements) -> Witness
where
    DB: Dialect,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'c> &'c sqlx::Pool<DB>: Executor<'c, Database = DB>,
{
    let mut witness = Witness::default();
    let grant = witness.grant("redis", RESOURCE, 33);
    witness.refused(store.claim(&grant).await);
    witness.refused(store.begin(&grant).await);
    store.migrate().await.unwrap();

    witness.refused(store.begin(&grant).await);
    store.claim(&grant).await.unwrap();
    let mut tx = store.begin(&grant).await.unwrap();
    sqlx::query(WRITE).execute(&mut *tx).await.unwrap();
    witness.saw(&tx);
    let receipt = tx.commit().await.unwrap();
    witness.saw(&receipt);
    let single = store
        .begin(&grant)
        .execute(sqlx::query(WRITE))
        .await
        .unwrap();
    witness.saw(&single);
    witness.saw(&store.high_water(grant.resource()).await.unwrap());
    witness.saw(store);

    for wrong in [
        witness.grant("redis", RESOURCE, 32),
        witness.grant("redis", RESOURCE, 33),
        witness.grant("etcd", RESOURCE, 34),
    ] {
        witness.refused(store.claim(&wrong).await);
        witness.refused(store.begin(&wrong).await);
        witness.refused(store.settle(&wrong).await);
        let single = store.begin(&wrong).execute(sqlx::query(WRITE));
        witness.refused(single.await);
        witness.refused(store.begin(&grant).and(&wrong).await);
    }
    store.settle(&grant).await.unwrap();

    let mut tx = store.begin(&grant).await.unwrap();
    let broken = sqlx::query(statements.broken).execute(&mut *tx).await;
    witness.saw(&broken.err().unwrap());
    tx.rollback().await.unwrap();

    let locks = palisade::connect("memory:").await.unwrap();
    let protected = FencedLocks::new(locks, store.clone());
    let guard = protected.acquire("account:43").await;
    // The store trusts another lock service.
    witness.saw(&guard.unwrap_err());
    let locks = palisade::connect("memory:").issuer(grant.issuer().clone());
    let protected = FencedLocks::new(locks.await.unwrap(), store.clone());
    let guard = protected.acquire("account:43").await.unwrap();
    witness.remember(guard.sequencer());
    witness.saw(&guard);
    let delete = sqlx::query(statements.delete_marks);
    delete.execute(store.pool()).await.unwrap();
    witness.refused(guard.begin().await);
    witness
}
