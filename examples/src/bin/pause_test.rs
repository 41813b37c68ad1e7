//! A test of a critical section over a real database: the section is stopped at each of its awaits
//! for longer than its lease, while a rival runs to its end.
use std::time::Duration;

use lock_testing::{Process, pause};
use palisade::store::{FencedLockError, FencedLocks, SqliteFencedStore};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

struct Bank {
    store: SqliteFencedStore,
    _folder: tempfile::TempDir,
}

/// Pays out 10: reads the balance, and writes 10 less. `paid_out` has the sum of all payments.
async fn pay_out(bank: &Bank, me: &Process) -> Result<(), FencedLockError> {
    let accounts = FencedLocks::new(me.locks().clone(), bank.store.clone());
    let guard = accounts.acquire("account:42").await?;
    let read = sqlx::query_scalar("SELECT balance FROM account").fetch_one(bank.store.pool());
    let balance: i64 = read.await?;
    let mut tx = guard.begin().await?; // a stale holder is refused here
    sqlx::query("UPDATE account SET balance = ?, paid_out = paid_out + 10")
        .bind(balance - 10)
        .execute(&mut *tx)
        .await?;
    tx.commit_and_release(guard).await?;
    Ok(())
}

async fn bank() -> Result<Bank, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let file = SqliteConnectOptions::new().filename(folder.path().join("bank.db"));
    let file = SqliteFencedStore::recommended(file.create_if_missing(true));
    let file = file.busy_timeout(Duration::from_millis(50));
    let store = SqliteFencedStore::new(SqlitePool::connect_with(file).await?);
    store.migrate().await?;
    let account = "CREATE TABLE account AS SELECT 100 AS balance, 0 AS paid_out";
    sqlx::query(account).execute(store.pool()).await?;
    Ok(Bank {
        store,
        _folder: folder,
    })
}

/// In a test of yours this is the body of a `#[tokio::test]`.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    pause::at_every_await(async || bank().await.expect("a new bank"), pay_out)
        .real_io(Duration::from_secs(1))
        .check(async |bank: &Bank| {
            let sum = sqlx::query_scalar("SELECT balance + paid_out FROM account");
            let sum: Result<i64, _> = sum.fetch_one(bank.store.pool()).await;
            sum.is_ok_and(|sum| sum == 100)
        })
        .await;
    println!("no pause loses money");
}
