//! Protected tables: cases of SQLite alone.

use fenced_store::{FenceError, Protection, SqliteFencedStore};
use sqlx::{AssertSqlSafe, Executor, SqliteConnection};

use crate::{
    file::SqliteFile,
    rule::{
        Harness, SqlHarness, assert_kind, balance, by_row, fenced_add, fresh, grant, is_of_another,
        is_unfenced, protected_and_claimed,
    },
};

async fn run(connection: &mut SqliteConnection, statement: &str) -> Result<u64, FenceError> {
    let statement = AssertSqlSafe(statement.to_owned());
    Ok(connection.execute(statement).await?.rows_affected())
}

async fn add_unfenced(store: &SqliteFencedStore) -> Result<(), FenceError> {
    let mut connection = store.pool().acquire().await.unwrap();
    SqliteFile::add(&mut connection, 1).await
}

/// The triggers know the id that the database gives to a new row.
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

/// A statement of the user that commits leaves the note of its transaction in the file. The next
/// commit, or the next begin, deletes the note; until then the mark decides.
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

/// `Busy` would say that nothing has happened, and the caller would do the work again.
/// Catches: work that is done twice, because its end was taken for a lock wait.
#[tokio::test]
async fn a_transaction_that_was_ended_is_not_busy_because_another_one_writes_by_then() {
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

/// The triggers refuse the writes after SQLite has ended the transaction by itself.
#[tokio::test]
async fn after_a_rollback_inside_nothing_is_written_unfenced() {
    let (world, own) = protected_and_claimed::<SqliteFile>().await;
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "INSERT OR ROLLBACK INTO accounts VALUES (42, 0)")
        .await
        .unwrap_err();
    let error: FenceError = SqliteFile::add(&mut tx, 1).await.unwrap_err();
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

/// The triggers of the renamed table still have their names, and still protect it.
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
    // The new table was never protected, so this call does nothing, and the other table stays
    // protected.
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

/// The text of a real number depends on the version of SQLite, and a blob has the same text as a
/// text. So the fence of one row would allow a write to another row.
#[tokio::test]
async fn only_integers_and_texts_are_ids() {
    let world: SqliteFile = fresh().await;
    let pool = world.store().pool();
    let create = "CREATE TABLE facts (id, number INTEGER NOT NULL DEFAULT 0)";
    pool.execute(create).await.unwrap();
    let facts = Protection::rows("facts", "id", "fact:").unwrap();
    world.store().protect(&facts).await.unwrap();
    for (token, (name, ids)) in (1..).zip([
        ("1", &["x'31'"][..]),
        ("1.0", &["1.0"]),
        ("0.3", &["0.3", "0.1 + 0.2"]),
    ]) {
        let own = grant(&format!("fact:{name}"), token);
        world.store().claim(&own).await.unwrap();
        for id in ids {
            let mut tx = world.store().begin(&own).await.unwrap();
            let insert = format!("INSERT INTO facts (id) VALUES ({id})");
            let error = run(&mut tx, &insert).await.unwrap_err();
            assert!(is_of_another(&error), "{id}: {error:?}");
            // The control.
            let insert = format!("INSERT INTO facts (id) VALUES ('{name}')");
            run(&mut tx, &insert).await.unwrap();
        }
    }
    let one = grant("fact:2", 7);
    world.store().claim(&one).await.unwrap();
    let mut tx = world.store().begin(&one).await.unwrap();
    run(&mut tx, "INSERT INTO facts (id) VALUES (2)")
        .await
        .unwrap();
}

/// Catches: a kind of statement that writes rows and runs no trigger.
#[tokio::test]
async fn statements_of_every_kind_meet_the_triggers() {
    let (world, _) = protected_and_claimed::<SqliteFile>().await;
    let mut connection = world.store().pool().acquire().await.unwrap();
    for statement in [
        "CREATE TABLE newer (id INTEGER PRIMARY KEY, balance INTEGER)",
        "INSERT INTO newer VALUES (42, 1), (43, 1)",
        "CREATE VIEW rich AS SELECT * FROM accounts",
        "CREATE TRIGGER into_rich INSTEAD OF UPDATE ON rich
           BEGIN UPDATE accounts SET balance = NEW.balance; END",
        "CREATE TRIGGER follow AFTER INSERT ON newer
           BEGIN UPDATE accounts SET balance = NEW.balance; END",
        "ALTER TABLE accounts ADD COLUMN owner INTEGER REFERENCES newer
           ON DELETE CASCADE ON UPDATE CASCADE",
        "PRAGMA foreign_keys = ON",
    ] {
        run(&mut connection, statement).await.unwrap();
    }
    world.store().unprotect(&by_row()).await.unwrap();
    run(&mut connection, "UPDATE accounts SET owner = 42")
        .await
        .unwrap();
    world.store().protect(&by_row()).await.unwrap();
    for statement in [
        "UPDATE rich SET balance = 0",
        "REPLACE INTO accounts (id, balance) SELECT id, balance FROM newer",
        "INSERT OR IGNORE INTO accounts (id, balance) SELECT id + 1, 0 FROM newer",
        "UPDATE accounts SET balance = newer.balance FROM newer WHERE newer.id = accounts.id",
        "DELETE FROM accounts",
        "DELETE FROM accounts RETURNING id",
        "INSERT INTO newer VALUES (44, 1)",
        "UPDATE newer SET id = 45 WHERE id = 42",
        "DELETE FROM newer",
    ] {
        let error = run(&mut connection, statement).await.unwrap_err();
        assert!(is_unfenced(&error), "{statement}: {error:?}");
    }
    drop(connection);
    assert_eq!(balance(&world).await, 100);
}
