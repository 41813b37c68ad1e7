//! Ways to change the rows of a protected table: ways that run the triggers, and ways that do not,
//! of which docs/protected-tables.md warns.

use e2e::servers::MySqlServer;
use fenced_store::{FenceError, FencedStore, MySqlFencedStore};
use sqlx::{AssertSqlSafe, Executor, MySqlConnection};

use crate::{
    mysql::server::{MySqlStore, on},
    rule::{Harness, balance, by_row, fresh, is_unfenced, protected_and_claimed},
};

async fn run(connection: &mut MySqlConnection, statement: &str) -> Result<(), FenceError> {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
    Ok(connection.execute(statement).await.map(drop)?)
}

/// Catches: a kind of statement that writes rows and runs no trigger.
async fn statements_of_every_kind_meet_the_triggers<S: MySqlServer>() {
    let (world, _) = protected_and_claimed::<MySqlStore<S>>().await;
    let mut connection = world.store().pool().acquire().await.unwrap();
    for statement in [
        "CREATE TABLE newer (id INT, balance BIGINT)",
        "INSERT INTO newer VALUES (42, 1), (43, 1)",
        "CREATE VIEW rich AS SELECT * FROM accounts",
        "CREATE PROCEDURE add_one() UPDATE accounts SET balance = balance + 1",
        "CREATE TRIGGER follow AFTER INSERT ON newer FOR EACH ROW
           UPDATE accounts SET balance = NEW.balance",
    ] {
        run(&mut connection, statement).await.unwrap();
    }
    for statement in [
        "UPDATE rich SET balance = 0",
        "DELETE FROM rich",
        "REPLACE INTO accounts SELECT * FROM newer",
        "INSERT INTO accounts SELECT id + 1, balance FROM newer",
        "INSERT IGNORE INTO accounts SELECT * FROM newer",
        "INSERT INTO accounts SELECT * FROM newer ON DUPLICATE KEY UPDATE balance = 0",
        "UPDATE accounts JOIN newer USING (id) SET accounts.balance = 0",
        "UPDATE IGNORE accounts SET id = 43",
        "DELETE accounts FROM accounts JOIN newer USING (id)",
        "DELETE IGNORE FROM accounts",
        "CALL add_one()",
        "INSERT INTO newer VALUES (42, 1)",
        "PREPARE one FROM 'DELETE FROM accounts'; EXECUTE one",
        "XA START 'x'; DELETE FROM accounts",
    ] {
        let error = run(&mut connection, statement).await.unwrap_err();
        assert!(is_unfenced(&error), "{statement}: {error:?}");
    }
    run(&mut connection, "XA END 'x'; XA ROLLBACK 'x'")
        .await
        .unwrap();
    assert_eq!(balance(&world).await, 100);
}

/// Partitions of a protected table can be emptied and exchanged like tables.
async fn partitions_get_past_the_triggers<S: MySqlServer>() {
    let (world, _) = protected_and_claimed::<MySqlStore<S>>().await;
    let mut connection = world.store().pool().acquire().await.unwrap();
    for statement in [
        "ALTER TABLE accounts PARTITION BY LIST (id) (
           PARTITION p42 VALUES IN (42), PARTITION p43 VALUES IN (43))",
        "CREATE TABLE other (id INT PRIMARY KEY, balance BIGINT NOT NULL)",
        "INSERT INTO other VALUES (42, 7)",
    ] {
        run(&mut connection, statement).await.unwrap();
    }
    // The control.
    let error = run(&mut connection, "DELETE FROM accounts PARTITION (p42)").await;
    assert!(is_unfenced(&error.unwrap_err()));
    let exchange = "ALTER TABLE accounts EXCHANGE PARTITION p42 WITH TABLE other";
    run(&mut connection, exchange).await.unwrap();
    assert_eq!(balance(&world).await, 7);
    let left = async || -> i64 {
        let count = sqlx::query_scalar("SELECT COUNT(*) FROM accounts");
        count.fetch_one(world.store().pool()).await.unwrap()
    };
    run(
        &mut connection,
        "ALTER TABLE accounts TRUNCATE PARTITION p42",
    )
    .await
    .unwrap();
    assert_eq!(left().await, 0);
}

async fn session_of(store: &MySqlFencedStore) -> sqlx::pool::PoolConnection<sqlx::MySql> {
    store.pool().acquire().await.unwrap()
}

/// A user with no right on our tables, but with the right to make temporary ones.
async fn temporary_tables_under_our_names_get_past_the_triggers<S: MySqlServer>() {
    let (world, _) = protected_and_claimed::<MySqlStore<S>>().await;
    let hide = "CREATE TEMPORARY TABLE fenced_open_transaction AS SELECT
           CONNECTION_ID() AS connection_id, 'account:42' AS resource, 33 AS token, 'x' AS tx_name;
         CREATE TEMPORARY TABLE fenced_high_water_mark AS SELECT
           'account:42' AS resource, 33 AS token;
         SET @fenced_tx_name = 'x'";
    let add = "UPDATE accounts SET balance = 0 WHERE id = 42";
    // The control: the documented rights do not include it.
    let plain = world.store_of_user_on("accounts").await;
    let mut plain = session_of(&plain).await;
    run(&mut plain, hide).await.unwrap_err();
    run(&mut plain, add).await.unwrap_err();

    let able = world
        .store_of_user("GRANT CREATE TEMPORARY TABLES ON *.* TO")
        .await;
    let mut able = session_of(&able).await;
    run(&mut able, hide).await.unwrap();
    run(&mut able, add).await.unwrap();
    assert_eq!(balance(&world).await, 0);
}

/// The triggers run with the rights of the user who has protected the table. Here this user is
/// deleted.
async fn without_the_user_that_has_protected_a_table_every_write_fails<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    // With a binary log MySQL lets no other user create triggers.
    let grant = on::<S, _>("GRANT TRIGGER ON *.* TO", "GRANT TRIGGER, SUPER ON *.* TO");
    let owner = world.store_of_user(grant).await;
    owner.protect(&by_row()).await.unwrap();
    owner.pool().close().await;
    let mut connection = world.store().pool().acquire().await.unwrap();
    let definer = "SELECT DISTINCT definer FROM information_schema.triggers
        WHERE trigger_schema = DATABASE()";
    let definer: String = sqlx::query_scalar(definer)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let (user, host) = definer.split_once('@').unwrap();
    let error = run(&mut connection, "DELETE FROM accounts").await;
    assert!(is_unfenced(&error.unwrap_err()));
    let gone = format!("DROP USER '{user}'@'{host}'");
    run(&mut connection, &gone).await.unwrap();
    let error = run(&mut connection, "DELETE FROM accounts").await;
    let error = format!("{:?}", error.unwrap_err());
    assert!(error.contains("number: 1449"), "{error}");
    // Another user, who exists, protects the table again.
    let anew = FencedStore::new(world.store().pool().clone());
    anew.unprotect(&by_row()).await.unwrap();
    anew.protect(&by_row()).await.unwrap();
    let error = run(&mut connection, "DELETE FROM accounts").await;
    assert!(is_unfenced(&error.unwrap_err()));
}

on_both!(
    statements_of_every_kind_meet_the_triggers,
    partitions_get_past_the_triggers,
    temporary_tables_under_our_names_get_past_the_triggers,
    without_the_user_that_has_protected_a_table_every_write_fails,
);
