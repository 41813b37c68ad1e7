//! The accounts in the database. The statements do the same in each database, so handlers do not
//! know the database.

mod mysql;
mod refusal;

use fenced_store::{Dialect, FencedStore};
use palisade_cli::{AnyStore, Failure, told};
use sqlx::{Executor, Postgres, Sqlite};

pub(crate) use self::refusal::was_refused;

/// The result is `None` if there is no such account.
const BALANCE: &str = "SELECT balance FROM demo_accounts WHERE id = $1";

/// Opens the account unless there is one, in one statement.
const OPEN_ACCOUNT: &str = "INSERT INTO demo_accounts (id, balance) VALUES ($1, $2) \
                            ON CONFLICT (id) DO NOTHING";

/// Compares and writes in one statement, because others may write without a fence.
const REPLACE_BALANCE: &str =
    "UPDATE demo_accounts SET balance = $3 WHERE id = $1 AND balance = $2";

/// A database that keeps accounts beside its high-water marks.
pub(crate) trait Ledger: Dialect {
    /// Creates the table if it does not exist, even if two programs start at once. If the table
    /// exists, the role needs no right to create tables.
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
}

/// Creates the table of accounts if it does not exist. Opens the named account, if one is named and
/// does not exist.
///
/// # Errors
/// [`Failure::ServerLost`] if the database fails.
pub(crate) async fn prepare(store: &AnyStore, first: Option<(&str, i64)>) -> Result<(), Failure> {
    let prepared = match store {
        AnyStore::MySql(store) => prepare_in(store, first).await,
        AnyStore::Postgres(store) => prepare_in(store, first).await,
        AnyStore::Sqlite(store) => prepare_in(store, first).await,
        _ => return Err(Failure::Usage(format!("no accounts in {}", store.kind()))),
    };
    prepared.map_err(|error| Failure::ServerLost(told(&error)))
}

async fn prepare_in<DB: Ledger>(
    store: &FencedStore<DB>,
    first: Option<(&str, i64)>,
) -> Result<(), sqlx::Error>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    let mut connection = store.pool().acquire().await?;
    (&mut *connection)
        .execute(sqlx::raw_sql(DB::CREATE))
        .await?;
    if let Some((id, balance)) = first {
        DB::open_account(&mut connection, id, balance).await?;
    }
    Ok(())
}

/// This is a macro, because the bounds of generic code would be longer than the code itself.
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
        }
    };
}

ledger!(Postgres, include_str!("ledger/postgres.sql"));
ledger!(Sqlite, include_str!("ledger/sqlite.sql"));
