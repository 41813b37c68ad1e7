//! Files and connections that are hard to use. A write that cannot be made is an error, and no
//! stale write is made.

use std::fs;

use fenced_store::{FenceError, FencedStore, Rights, SqliteFencedStore};
use sqlx::{
    AssertSqlSafe, Executor, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{
    file::SqliteFile,
    rule::{Harness, SqlHarness, assert_kind, balance, claimed, fenced_add, grant, high_water},
};

/// The primary result code of SQLite in an error that is no refusal of ours.
fn code_of(error: &FenceError) -> i32 {
    let FenceError::Db { source } = error else {
        panic!("{error:?}");
    };
    let code = source.as_database_error().unwrap().code().unwrap();
    code.parse::<i32>().unwrap() & 0xff
}

const READ_ONLY: i32 = 8;
const FULL: i32 = 13;

/// Fills the file to its last page. From then on it has no room for a row of this size.
async fn fill(connection: &mut SqliteConnection) {
    for statement in [
        "CREATE TABLE ballast (of BLOB)",
        "INSERT INTO ballast VALUES (zeroblob(100000))",
        "PRAGMA max_page_count = 1",
    ] {
        connection.execute(statement).await.unwrap();
    }
}

const TOO_MUCH: &str = "INSERT INTO ballast VALUES (zeroblob(1000000))";

/// On a full disk SQLite ends either the transaction or only the statement.
#[tokio::test]
async fn on_a_full_disk_a_transaction_is_stored_whole_or_not_at_all() {
    let (world, grant) = claimed::<SqliteFile>().await;
    let store = world.store_of_one().await;
    fill(&mut store.pool().acquire().await.unwrap()).await;
    for ends_it in [false, true] {
        let before = balance(&world).await;
        let mut tx = store.begin(&grant).await.unwrap();
        SqliteFile::add(&mut tx, 1000).await.unwrap();
        let statement = if ends_it {
            TOO_MUCH.replace("INSERT", "INSERT OR ROLLBACK")
        } else {
            TOO_MUCH.to_owned()
        };
        let full = tx.execute(AssertSqlSafe(statement)).await.unwrap_err();
        assert_eq!(code_of(&full.into()), FULL);
        let committed = tx.commit().await;
        let added = balance(&world).await - before;
        match committed {
            Ok(_) => assert_eq!(added, 1000),
            Err(FenceError::Aborted) => assert_eq!(added, 0),
            Err(error) => panic!("{error:?}"),
        }
    }
    // No holder is kept out afterwards.
    fenced_add(&world, &grant).await.unwrap();
}

/// A claim without room leaves nothing: the mark does not move, and its grant cannot begin.
#[tokio::test]
async fn a_claim_on_a_full_disk_claims_nothing() {
    let (world, old) = claimed::<SqliteFile>().await;
    let store = world.store_of_one().await;
    fill(&mut store.pool().acquire().await.unwrap()).await;
    let mut refused = None;
    for number in 0..1000 {
        let long = format!("{number:0>200}");
        let next = grant(long.leak(), 34);
        match store.claim(&next).await {
            Ok(()) => fenced_add(&world, &next).await.unwrap(),
            Err(error) => {
                assert_eq!(code_of(&error), FULL);
                refused = Some(next);
                break;
            }
        }
    }
    let refused = refused.expect("the file is full");
    assert_eq!(high_water(&world, refused.resource().as_str()).await, None);
    let error = world.store().begin(&refused).await.unwrap_err();
    assert_kind!(error, NotClaimed);
    // A raise of an existing mark needs no further room.
    let new = grant("account:42", 34);
    store.claim(&new).await.unwrap();
    let stale = store.begin(&old).await.unwrap_err();
    assert_kind!(stale, Stale);
}

/// The file is read only because of how it was opened, or by a setting of the session. In such a
/// file SQLite begins a transaction that keeps no other writer out, but it writes nothing.
#[tokio::test]
async fn a_file_that_is_only_read_takes_no_claim_and_no_write() {
    let (world, own) = claimed::<SqliteFile>().await;
    let next = grant("account:42", 34);
    let options = world.store().pool().connect_options();
    let options = SqliteConnectOptions::clone(&options).read_only(true);
    let reader = FencedStore::new(SqlitePool::connect_with(options).await.unwrap());
    // No migration is missing.
    reader.migrate().await.unwrap();
    let told = reader.check(Rights::Write).await.unwrap_err();
    assert!(told.to_string().contains("takes no writes"), "{told}");
    let session = world.store_of_one().await;
    let query_only = "PRAGMA query_only = true";
    session.pool().execute(query_only).await.unwrap();
    for store in [reader, session] {
        let mark = store.high_water(own.resource()).await.unwrap().unwrap();
        assert_eq!(mark.token(), own.token());
        let refused = store.claim(&next).await.unwrap_err();
        assert_eq!(code_of(&refused), READ_ONLY);
        let refused = async {
            let mut tx = store.begin(&own).await?;
            SqliteFile::add(&mut tx, 1).await
        };
        assert_eq!(code_of(&refused.await.unwrap_err()), READ_ONLY);
        let refused = SqliteFile::add_at_once(&store, &own, 42, 1).await;
        assert_eq!(code_of(&refused.unwrap_err()), READ_ONLY);
    }
    assert_eq!(balance(&world).await, 100);
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    fenced_add(&world, &own).await.unwrap();
}

/// The write-ahead log is a part of the file: without the log, the last commits and claims are
/// gone.
#[tokio::test]
async fn a_log_that_has_vanished_takes_its_claims_along_and_their_holders_get_an_error() {
    let (world, old) = claimed::<SqliteFile>().await;
    let pool = world.store().pool();
    pool.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        .await
        .unwrap();
    let new = grant("account:42", 34);
    world.store().claim(&new).await.unwrap();
    fenced_add(&world, &new).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let rest = directory.path().join("rest.db");
    let options = pool.connect_options();
    fs::copy(options.get_filename(), &rest).unwrap();

    let options = SqliteConnectOptions::new().filename(&rest);
    let options = SqliteFencedStore::recommended(options);
    let rest = FencedStore::new(SqlitePool::connect_with(options).await.unwrap());
    rest.check(Rights::Write).await.unwrap();
    let told = rest.begin(&new).await.unwrap_err();
    assert_kind!(told, NotClaimed);
    let told = rest.settle(&new).await.unwrap_err();
    assert_kind!(told, MarkLost);
    // After the next claim everything works again.
    rest.claim(&grant("account:42", 35)).await.unwrap();
    for gone in [&old, &new] {
        let stale = rest.begin(gone).await.unwrap_err();
        assert_kind!(stale, Stale);
    }
}

/// A library may make a temporary table of that name on a connection of the pool.
/// Catches: a table of ours that is named without its schema.
#[tokio::test]
async fn a_temporary_table_of_an_equal_name_hides_no_mark() {
    let (world, stale) = claimed::<SqliteFile>().await;
    let next = grant("account:42", 34);
    world.store().claim(&next).await.unwrap();
    let store = world.store_of_one().await;
    store
        .pool()
        .execute(
            "CREATE TEMP TABLE fenced_high_water_mark AS SELECT * FROM main.fenced_high_water_mark;
             CREATE TEMP TABLE fenced_lock_service AS SELECT * FROM main.fenced_lock_service;
             CREATE TEMP TABLE fenced_open_transaction AS
                 SELECT * FROM main.fenced_open_transaction;
             CREATE TEMP TABLE fenced_protected AS SELECT * FROM main.fenced_protected;",
        )
        .await
        .unwrap();
    sqlx::query("UPDATE temp.fenced_high_water_mark SET token = $1, holder = $2")
        .bind(i64::from(stale.token()))
        .bind(stale.holder().kept_digest())
        .execute(store.pool())
        .await
        .unwrap();
    let refused = store.begin(&stale).await.unwrap_err();
    assert_kind!(refused, Stale);
    let mut tx = store.begin(&next).await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    store.claim(&grant("account:42", 35)).await.unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(35));
}

/// The program that wrote the mark had switched off the checks of the table.
#[tokio::test]
async fn a_mark_that_is_no_mark_admits_no_holder() {
    for broken in [
        "token = 'thirty-three'",
        "token = 33.5",
        "token = x'21'",
        "token = 0",
        "token = -33",
        "token = 9223372036854775807",
        "holder = x'00ff'",
        "issuer = x'00ff'",
        "issuer = ''",
    ] {
        let (world, old) = claimed::<SqliteFile>().await;
        let new = grant("account:42", 34);
        let pool = SqlitePoolOptions::new().max_connections(1);
        let options = world.store().pool().connect_options();
        let pool = pool
            .connect_with(SqliteConnectOptions::clone(&options))
            .await;
        let alter = format!(
            "PRAGMA ignore_check_constraints = true; UPDATE fenced_high_water_mark SET {broken}"
        );
        let alter = sqlx::raw_sql(AssertSqlSafe(alter));
        pool.unwrap().execute(alter).await.unwrap();
        for grant in [&old, &new] {
            let error = world.store().begin(grant).await.unwrap_err();
            assert!(!error.is_retryable(), "{broken}: {error:?}");
            let error = world.store().claim(grant).await.unwrap_err();
            assert!(!error.is_retryable(), "{broken}: {error:?}");
            world.store().settle(grant).await.unwrap_err();
            fenced_add(&world, grant).await.unwrap_err();
        }
        assert_eq!(balance(&world).await, 100, "{broken}");
    }
}
