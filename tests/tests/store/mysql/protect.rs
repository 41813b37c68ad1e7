//! Protected tables: cases of MariaDB alone.

use std::time::Duration;

use e2e::servers::MySqlServer;
use fenced_store::{FenceError, FencedStore, Protection};
use sqlx::{AssertSqlSafe, Executor, MySqlConnection};
use tokio::time::timeout;

use crate::{
    mysql::server::MySqlStore,
    rule::{
        Harness, SqlHarness, assert_kind, balance, by_row, fresh, grant, is_of_another,
        is_unfenced, protected_and_claimed,
    },
};

async fn run(connection: &mut MySqlConnection, statement: &str) -> Result<u64, FenceError> {
    let statement = AssertSqlSafe(statement.to_owned());
    Ok(connection.execute(statement).await?.rows_affected())
}

/// The id that the database gives to a new row is known to the triggers.
async fn a_row_is_judged_by_the_id_that_it_gets<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let pool = world.store().pool();
    pool.execute("CREATE TABLE entries (id INT AUTO_INCREMENT PRIMARY KEY, amount INT)")
        .await
        .unwrap();
    let entries = Protection::rows("entries", "id", "entry:").unwrap();
    world.store().protect(&entries).await.unwrap();
    let first = grant("entry:1", 33);
    world.store().claim(&first).await.unwrap();
    let mut tx = world.store().begin(&first).await.unwrap();
    let insert = "INSERT INTO entries (amount) VALUES (5)";
    assert_eq!(run(&mut tx, insert).await.unwrap(), 1);
    assert!(is_of_another(&run(&mut tx, insert).await.unwrap_err()));
}

async fn replace_and_on_duplicate_key_are_judged_by_what_they_do<S: MySqlServer>() {
    let (world, own) = protected_and_claimed::<MySqlStore<S>>().await;
    let pool = world.store().pool();
    pool.execute("ALTER TABLE accounts ADD owner VARCHAR(10) UNIQUE")
        .await
        .unwrap();
    let mut tx = world.store().begin(&own).await.unwrap();
    for statement in [
        "UPDATE accounts SET owner = 'ann' WHERE id = 42",
        "REPLACE INTO accounts VALUES (42, 2, 'ann')",
        "INSERT INTO accounts VALUES (42, 0, 'ann') ON DUPLICATE KEY UPDATE balance = 3",
        // Another id, which is not the one that is stored.
        "INSERT INTO accounts VALUES (43, 0, 'ann') ON DUPLICATE KEY UPDATE balance = 4",
        "INSERT IGNORE INTO accounts VALUES (42, 0, 'ann')",
    ] {
        run(&mut tx, statement).await.unwrap();
    }
    let replace = "REPLACE INTO accounts VALUES (43, 0, 'ann')";
    assert!(is_of_another(&run(&mut tx, replace).await.unwrap_err()));
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 4);
    let ignore = "INSERT IGNORE INTO accounts VALUES (43, 0, 'bob')";
    let error = run(&mut pool.acquire().await.unwrap(), ignore)
        .await
        .unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
}

/// A statement that commits without the store's knowledge leaves the note of its transaction in the
/// session. The end of the transaction deletes the note. Until then the mark decides.
async fn a_note_that_was_left_behind_is_good_until_the_next_claim_at_most<S: MySqlServer>() {
    let (world, own) = protected_and_claimed::<MySqlStore<S>>().await;
    let store = FencedStore::new(world.pool_of_one().await);
    let mut tx = store.begin(&own).await.unwrap();
    run(&mut tx, "COMMIT").await.unwrap();
    MySqlStore::<S>::add(&mut tx, 1).await.unwrap();
    // Another session never has the note.
    let mut another = world.store().pool().acquire().await.unwrap();
    let error: FenceError = MySqlStore::<S>::add(&mut another, 1).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");

    world.store().claim(&grant("account:42", 34)).await.unwrap();
    let error = MySqlStore::<S>::add(&mut tx, 1).await.unwrap_err();
    match error {
        FenceError::Stale {
            presented,
            high_water,
            ..
        } => assert_eq!((presented.get(), high_water.get()), (33, 34)),
        other => panic!("{other:?}"),
    }
    drop(tx);
    let mut connection = store.pool().acquire().await.unwrap();
    let error = MySqlStore::<S>::add(&mut connection, 1).await.unwrap_err();
    assert!(is_unfenced(&error));
    assert_eq!(balance(&world).await, 101);
}

/// After a deadlock MariaDB goes on without a transaction: the triggers refuse the writes that
/// follow.
async fn after_a_deadlock_nothing_is_written_unfenced<S: MySqlServer>() {
    let (world, own) = protected_and_claimed::<MySqlStore<S>>().await;
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, "ROLLBACK").await.unwrap();
    let error: FenceError = MySqlStore::<S>::add(&mut tx, 1).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
}

/// The open transaction belongs to a client that was refused and has not noticed yet.
async fn a_refused_write_in_an_open_transaction_delays_no_other_client<S: MySqlServer>() {
    let (world, own) = protected_and_claimed::<MySqlStore<S>>().await;
    let one = FencedStore::new(world.pool_of_one().await);
    // The client's connection has been in fenced transactions before.
    one.begin(&own).await.unwrap().commit().await.unwrap();
    let mut refused = one.pool().begin().await.unwrap();
    let error: FenceError = MySqlStore::<S>::add(&mut refused, 1).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
    drop(refused);
    one.begin(&own).await.unwrap().rollback().await.unwrap();
    drop(one.begin(&own).await.unwrap());
    let mut refused = one.pool().begin().await.unwrap();
    let error: FenceError = MySqlStore::<S>::add(&mut refused, 1).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
    // And a connection that is in a transaction of another resource.
    let other = grant("account:0", 1);
    world.store().claim(&other).await.unwrap();
    let mut of_another = world.store().begin(&other).await.unwrap();
    let error = run(&mut of_another, "INSERT INTO accounts VALUES (43, 0)")
        .await
        .unwrap_err();
    assert!(is_of_another(&error), "{error:?}");
    let others = async {
        let mut open = Vec::new();
        for number in 1..=8 {
            let other = grant(&format!("account:{number}"), 1);
            world.store().claim(&other).await.unwrap();
            open.push(world.store().begin(&other).await.unwrap());
        }
        for tx in open {
            tx.commit().await.unwrap();
        }
        world
            .store()
            .begin(&own)
            .await
            .unwrap()
            .commit()
            .await
            .unwrap();
    };
    timeout(Duration::from_secs(10), others).await.unwrap();
    of_another.rollback().await.unwrap();
    refused.rollback().await.unwrap();
}

/// A table of another database, whose triggers find the tables of this one.
async fn a_table_of_another_database_can_be_protected<S: MySqlServer>() {
    let (world, own) = protected_and_claimed::<MySqlStore<S>>().await;
    let other: MySqlStore<S> = MySqlStore::<S>::unmigrated().await;
    let database: String = sqlx::query_scalar("SELECT DATABASE()")
        .fetch_one(other.store().pool())
        .await
        .unwrap();
    world
        .store()
        .protect(&by_row().in_schema(&database))
        .await
        .unwrap();
    let add = format!("UPDATE {database}.accounts SET balance = 1 WHERE id = 42");
    let mut connection = other.store().pool().acquire().await.unwrap();
    let error = run(&mut connection, &add).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
    let mut tx = world.store().begin(&own).await.unwrap();
    run(&mut tx, &add).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&other).await, 1);
    world
        .store()
        .unprotect(&by_row().in_schema(&database))
        .await
        .unwrap();
    run(&mut connection, &add).await.unwrap();
}

/// Names with characters that cannot be part of one, or that are too long.
async fn an_id_that_names_no_resource_is_refused<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let pool = world.store().pool();
    pool.execute("CREATE TABLE texts (id VARCHAR(400) CHARACTER SET utf8mb4)")
        .await
        .unwrap();
    let texts = Protection::rows("texts", "id", "text:").unwrap();
    world.store().protect(&texts).await.unwrap();
    let own = grant("text:?", 1);
    world.store().claim(&own).await.unwrap();
    // This session is not strict, unlike the session in which the triggers were made.
    let store = world.store_after("SET SESSION sql_mode = ''").await;
    let mut tx = store.begin(&own).await.unwrap();
    for id in ["'\u{e9}'", "REPEAT('x', 300)", "NULL"] {
        let insert = format!("INSERT INTO texts VALUES ({id})");
        run(&mut tx, &insert).await.unwrap_err();
    }
    let without = run(&mut tx, "INSERT INTO texts VALUES (NULL)").await;
    assert!(is_of_another(&without.unwrap_err()));
    run(&mut tx, "INSERT INTO texts VALUES ('?')")
        .await
        .unwrap();
}

/// Catches: a refused write that no rollback takes back.
async fn only_tables_with_transactions_can_be_protected<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let pool = world.store().pool();
    pool.execute("CREATE TABLE flat (id INT) ENGINE = MyISAM")
        .await
        .unwrap();
    let flat = Protection::rows("flat", "id", "account:").unwrap();
    let error = world.store().protect(&flat).await.unwrap_err();
    assert_kind!(error, CannotProtect);
}

/// A writer needs rights on our tables only to enter. The error of a refused write says what is
/// wrong.
async fn a_user_without_any_right_of_ours_is_refused_the_same<S: MySqlServer>() {
    let (world, _) = protected_and_claimed::<MySqlStore<S>>().await;
    let store = world.store_of_user_on("accounts").await;
    let mut connection = store.pool().acquire().await.unwrap();
    let error: FenceError = MySqlStore::<S>::add(&mut connection, 1).await.unwrap_err();
    assert!(is_unfenced(&error), "{error:?}");
}

/// The cases that docs/protected-tables.md lists as NOT stopped: triggers do not see them.
async fn truncate_and_cascades_get_past_the_triggers<S: MySqlServer>() {
    let (world, _) = protected_and_claimed::<MySqlStore<S>>().await;
    let pool = world.store().pool();
    for statement in [
        "CREATE TABLE owners (id INT PRIMARY KEY)",
        "INSERT INTO owners VALUES (1)",
        "ALTER TABLE accounts ADD owner INT DEFAULT 1,
         ADD FOREIGN KEY (owner) REFERENCES owners (id) ON DELETE CASCADE ON UPDATE CASCADE",
    ] {
        pool.execute(statement).await.unwrap();
    }
    let mut connection = pool.acquire().await.unwrap();
    // The control.
    for statement in ["UPDATE accounts SET owner = NULL", "DELETE FROM accounts"] {
        let error = run(&mut connection, statement).await.unwrap_err();
        assert!(is_unfenced(&error), "{statement}: {error:?}");
    }
    run(&mut connection, "UPDATE owners SET id = 2")
        .await
        .unwrap();
    let owner: i32 = sqlx::query_scalar("SELECT owner FROM accounts")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert_eq!(owner, 2);
    run(&mut connection, "DELETE FROM owners").await.unwrap();
    let accounts = "SELECT COUNT(*) FROM accounts";
    let left: i64 = sqlx::query_scalar(accounts).fetch_one(pool).await.unwrap();
    assert_eq!(left, 0);

    let (world, _) = protected_and_claimed::<MySqlStore<S>>().await;
    let mut connection = world.store().pool().acquire().await.unwrap();
    run(&mut connection, "TRUNCATE accounts").await.unwrap();
    let left: i64 = sqlx::query_scalar(accounts)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert_eq!(left, 0);
}

on_both!(
    a_row_is_judged_by_the_id_that_it_gets,
    replace_and_on_duplicate_key_are_judged_by_what_they_do,
    a_note_that_was_left_behind_is_good_until_the_next_claim_at_most,
    after_a_deadlock_nothing_is_written_unfenced,
    a_refused_write_in_an_open_transaction_delays_no_other_client,
    a_table_of_another_database_can_be_protected,
    an_id_that_names_no_resource_is_refused,
    only_tables_with_transactions_can_be_protected,
    a_user_without_any_right_of_ours_is_refused_the_same,
    truncate_and_cascades_get_past_the_triggers,
);
