//! The accounts in the database. The statements are the same everywhere; no handler knows which
//! database it talks to.

mod open;
mod refusal;
pub(crate) mod sqlite_file;

use fenced_store::Dialect;
use sqlx::{Postgres, Sqlite};

pub(crate) use self::{
    open::{AnyStore, connect, open, parse},
    refusal::was_refused,
};

/// The result is `None` if there is no such account.
const BALANCE: &str = "SELECT balance FROM demo_accounts WHERE id = $1";

/// Opens the account unless there is one, in one statement.
const OPEN_ACCOUNT: &str = "INSERT INTO demo_accounts (id, balance) VALUES ($1, $2) \
                            ON CONFLICT (id) DO NOTHING";

/// Compares and writes in one statement: others may write without a fence.
const REPLACE_BALANCE: &str =
    "UPDATE demo_accounts SET balance = $3 WHERE id = $1 AND balance = $2";

/// Remembers what the key was first used for, and reads it.
const FIRST_REQUEST: &str = "INSERT INTO demo_idempotency_keys (id, request, used_at) \
                             VALUES ($1, $2, $3) \
                             ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at \
                             RETURNING request";

const FORGET_REQUESTS: &str = "DELETE FROM demo_idempotency_keys WHERE used_at < $1";

/// A database that keeps accounts beside its high-water marks.
pub(crate) trait Ledger: Dialect {
    /// Creates the tables if they do not exist, even if two gateways start at once. Where they
    /// exist it needs no right to create any, but fails if the role may not use them.
    const CREATE: &'static str;

    /// Reads a balance.
    fn balance(
        connection: &mut Self::Connection,
        id: &str,
    ) -> impl Future<Output = Result<Option<i64>, sqlx::Error>> + Send;

    /// Writes a balance if it is `before` now; returns whether it was.
    fn replace_balance(
        connection: &mut Self::Connection,
        id: &str,
        before: i64,
        balance: i64,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// Opens an account with this balance if there is none; returns whether there was none.
    fn open_account(
        connection: &mut Self::Connection,
        id: &str,
        balance: i64,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send;

    /// What an idempotency key was first used for: this request, unless it was used before. `now`
    /// is in seconds since 1970.
    fn first_request(
        connection: &mut Self::Connection,
        key: &str,
        request: &str,
        now: i64,
    ) -> impl Future<Output = Result<String, sqlx::Error>> + Send;

    /// Forgets the keys whose last use was before this time.
    fn forget_requests(
        connection: &mut Self::Connection,
        before: i64,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// A macro, because generic code would have bounds longer than the code itself.
macro_rules! ledger {
    ($database:ty, $create:expr) => {
        impl Ledger for $database {
            const CREATE: &'static str = $create;

            async fn balance(
                connection: &mut Self::Connection,
                id: &str,
            ) -> Result<Option<i64>, sqlx::Error> {
                sqlx::query_scalar(BALANCE)
                    .bind(id)
                    .fetch_optional(connection)
                    .await
            }

            async fn replace_balance(
                connection: &mut Self::Connection,
                id: &str,
                before: i64,
                balance: i64,
            ) -> Result<bool, sqlx::Error> {
                let replaced = sqlx::query(REPLACE_BALANCE)
                    .bind(id)
                    .bind(before)
                    .bind(balance)
                    .execute(connection)
                    .await?;
                Ok(replaced.rows_affected() == 1)
            }

            async fn open_account(
                connection: &mut Self::Connection,
                id: &str,
                balance: i64,
            ) -> Result<bool, sqlx::Error> {
                let opened = sqlx::query(OPEN_ACCOUNT)
                    .bind(id)
                    .bind(balance)
                    .execute(connection)
                    .await?;
                Ok(opened.rows_affected() == 1)
            }

            async fn first_request(
                connection: &mut Self::Connection,
                key: &str,
                request: &str,
                now: i64,
            ) -> Result<String, sqlx::Error> {
                sqlx::query_scalar(FIRST_REQUEST)
                    .bind(key)
                    .bind(request)
                    .bind(now)
                    .fetch_one(connection)
                    .await
            }

            async fn forget_requests(
                connection: &mut Self::Connection,
                before: i64,
            ) -> Result<(), sqlx::Error> {
                let forget = sqlx::query(FORGET_REQUESTS).bind(before);
                forget.execute(connection).await.map(drop)
            }
        }
    };
}

ledger!(Postgres, include_str!("ledger/postgres.sql"));
ledger!(Sqlite, include_str!("ledger/sqlite.sql"));
