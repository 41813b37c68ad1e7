//! Protected tables: what only SQLite can do, or do wrong.

use fenced_store::{FenceError, Protection, SqliteFencedStore};
use sqlx::{AssertSqlSafe, Executor, SqliteConnection};

use crate::{
    file::SqliteFile,
    rule::{
        Harness, assert_kind, balance, by_row, fenced_add, grant, is_of_another, is_unfenced,
        protected_and_claimed,
    },
};

async fn run(connection: &mut SqliteConnection, statement: &str) -> Result<u64, FenceError> {
    let statement = AssertSqlSafe(statement.to_owned());
    Ok(connection.execute(statement).await?.rows_affected())
}

async fn add_unfenced(store: &SqliteFencedStore) -> Result<(), FenceError> {
    let mut connection = store.pool().acquire().await.unwrap();
    Ok(SqliteFile::add(&mut connection, 1).await?)
}

/// The id that the database gives to a new row is known to the triggers.
#[tokio::test]
async fn a_row_is_judged_by_the_id_that_it_gets() {
    let (world, own) = protected_and_claimed::<SqliteFile>().await;
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "DELETE FROM accounts").await.unwrap();
    let insert = "INSERT INTO accounts (balance) VALUES (5)";
    // It would be row 1.
    assert!(is_of_another(&run(&mut tx, insert).await.unwrap_err()));
    run(&mut tx, "INSERT INTO accounts VALUES (42, 5)")
        .await
        .unwrap();
}

#[tokio::test]
async fn conflict_clauses_do_not_silence_the_triggers() {
    let (world, own) = protected_and_claimed::<SqliteFile>().await;
    for statement in [
        "INSERT OR IGNORE INTO accounts VALUES (43, 0)",
        "INSERT OR REPLACE INTO accounts VALUES (43, 0)",
        "UPDATE OR IGNORE accounts SET id = 43",
        "INSERT INTO accounts VALUES (42, 0) ON CONFLICT (id) DO UPDATE SET id = 43",
    ] {
        let mut connection = world.store().pool().acquire().await.unwrap();
        let error = run(&mut connection, statement).await.unwrap_err();
        assert!(is_unfenced(&error), "{statement}: {error:?}");
        drop(connection);
        let mut tx = world.store().begin(&own).await.unwrap();
        let error = run(&mut tx, statement).await.unwrap_err();
        assert!(is_of_another(&error), "{statement}: {error:?}");
    }
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "INSERT OR REPLACE INTO accounts VALUES (42, 7)")
        .await
        .unwrap();
    run(
        &mut tx,
        "INSERT INTO accounts VALUES (42, 0) ON CONFLICT (id) DO UPDATE SET balance = 8",
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 8);
}

/// A statement that commits behind our back leaves the note of its transaction in the file. The
/// next commit, or the next begin, clears it away; until then the mark decides.
#[tokio::test]
async fn a_note_that_was_left_behind_is_good_until_the_next_claim_at_most() {
    let (world, own) = protected_and_claimed::<SqliteFile>().await;
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "COMMIT").await.unwrap();
    drop(tx);
    add_unfenced(world.store()).await.unwrap();
    let new = grant("account:42", 34);
    world.store().claim(&new).await.unwrap();
    assert!(is_unfenced(&add_unfenced(world.store()).await.unwrap_err()));
    fenced_add(&world, &new).await.unwrap();
    assert!(is_unfenced(&add_unfenced(world.store()).await.unwrap_err()));
    assert_eq!(balance(&world).await, 102);
}

/// `Busy` would say that nothing has happened, and have the work done again.
/// Catches: work that is done twice, because its end was taken for a lock wait.
#[tokio::test]
async fn a_transaction_that_was_ended_is_not_busy_because_somebody_else_writes_by_then() {
    let (world, own) = protected_and_claimed::<SqliteFile>().await;
    let mut tx = world.impatient().await.begin(&own).await.unwrap();
    tx.execute("ROLLBACK").await.unwrap();
    let next = world.store().begin(&own).await.unwrap();
    let error = tx.commit().await.unwrap_err();
    assert_kind!(error, Aborted);
    next.rollback().await.unwrap();
    let error = add_unfenced(world.store()).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
}

/// What is written after SQLite has ended the transaction by itself is refused by the triggers.
#[tokio::test]
async fn after_a_rollback_inside_nothing_is_written_unfenced() {
    let (world, own) = protected_and_claimed::<SqliteFile>().await;
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "INSERT OR ROLLBACK INTO accounts VALUES (42, 0)")
        .await
        .unwrap_err();
    let error: FenceError = SqliteFile::add(&mut tx, 1).await.unwrap_err().into();
    assert!(is_unfenced(&error), "{error:?}");
}

#[tokio::test]
async fn a_renamed_table_stays_protected_and_can_be_protected_anew() {
    let (world, own) = protected_and_claimed::<SqliteFile>().await;
    let pool = world.store().pool();
    pool.execute("ALTER TABLE accounts RENAME TO moved")
        .await
        .unwrap();
    let update = "UPDATE moved SET balance = 0";
    let mut connection = pool.acquire().await.unwrap();
    assert!(is_unfenced(
        &run(&mut connection, update).await.unwrap_err()
    ));
    drop(connection);
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, update).await.unwrap();
    tx.commit().await.unwrap();
    let moved = Protection::rows("MOVED", "ID", "moved:").unwrap();
    world.store().protect(&moved).await.unwrap();
    assert_eq!(world.triggers().await.len(), 3);
    world.store().unprotect(&moved).await.unwrap();
    assert_eq!(world.triggers().await, Vec::<String>::new());
}

const MOVED: &str = "UPDATE moved SET balance = balance + 1";
const NEW: &str = "UPDATE accounts SET balance = balance + 1";

/// The triggers of the renamed table have their names still, and it is protected still.
#[tokio::test]
async fn another_table_of_the_old_name_is_protected_by_itself() {
    let (world, own) = protected_and_claimed::<SqliteFile>().await;
    let store = world.store();
    store
        .pool()
        .execute(
            "ALTER TABLE accounts RENAME TO moved;
             CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
             INSERT INTO accounts VALUES (42, 100)",
        )
        .await
        .unwrap();
    let refused = async |statement| {
        let mut connection = store.pool().acquire().await.unwrap();
        run(&mut connection, statement)
            .await
            .is_err_and(|error| is_unfenced(&error))
    };
    let fenced = async |statement| {
        let mut tx = store.begin(&own).await.unwrap();
        run(&mut tx, statement).await.unwrap();
        tx.commit().await.unwrap();
    };

    assert!(refused(MOVED).await && !refused(NEW).await);
    // Never protected, it has nothing to lose, and takes nothing from the other.
    store.unprotect(&by_row()).await.unwrap();
    assert!(refused(MOVED).await);
    fenced(MOVED).await;

    store.protect(&by_row()).await.unwrap();
    assert!(refused(MOVED).await && refused(NEW).await);
    fenced(MOVED).await;
    fenced(NEW).await;
    store.unprotect(&by_row()).await.unwrap();
    assert!(refused(MOVED).await && !refused(NEW).await);
    fenced(MOVED).await;
    let moved = Protection::rows("moved", "id", "account:").unwrap();
    store.unprotect(&moved).await.unwrap();
    assert_eq!(world.triggers().await, Vec::<String>::new());
}
