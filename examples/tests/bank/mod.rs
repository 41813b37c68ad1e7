//! The code that the tests of all examples share, also the tests of `examples/frameworks`.

use e2e::{
    process::Process,
    servers::{PostgresDatabase, postgres_database},
};
use sqlx::PgPool;

/// The next line that a program prints.
pub(crate) async fn said(program: &mut Process) -> String {
    program.line().await.unwrap()
}

/// A database in which account 42 has 100.
pub(crate) async fn bank() -> (PostgresDatabase, PgPool) {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let accounts = "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL); \
                    INSERT INTO accounts VALUES (42, 100)";
    sqlx::raw_sql(accounts).execute(&pool).await.unwrap();
    (database, pool)
}

/// The balance of account 42.
pub(crate) async fn balance(pool: &PgPool) -> i64 {
    let balance = sqlx::query_scalar("SELECT balance FROM accounts").fetch_one(pool);
    balance.await.unwrap()
}
