use sqlx::MySql;

use super::Ledger;

const BALANCE: &str = "SELECT balance FROM demo_accounts WHERE id = ?";
const REPLACE_BALANCE: &str = "UPDATE demo_accounts SET balance = ? WHERE id = ? AND balance = ?";
const OPEN_ACCOUNT: &str = "INSERT INTO demo_accounts (id, balance) VALUES (?, ?)";

impl Ledger for MySql {
    const CREATE: &'static str = include_str!("mysql.sql");

    async fn balance(
        connection: &mut Self::Connection,
        id: &str,
    ) -> Result<Option<i64>, sqlx::Error> {
        let balance = sqlx::query_scalar(BALANCE).bind(id);
        balance.fetch_optional(connection).await
    }

    /// With this driver the server counts the rows that match, even if none of them changes.
    async fn replace_balance(
        connection: &mut Self::Connection,
        id: &str,
        before: i64,
        balance: i64,
    ) -> Result<bool, sqlx::Error> {
        let replace = sqlx::query(REPLACE_BALANCE).bind(balance);
        let replaced = replace.bind(id).bind(before).execute(connection).await?;
        Ok(replaced.rows_affected() == 1)
    }

    /// If the row exists, only this statement fails, also inside a transaction.
    async fn open_account(
        connection: &mut Self::Connection,
        id: &str,
        balance: i64,
    ) -> Result<bool, sqlx::Error> {
        let open = sqlx::query(OPEN_ACCOUNT).bind(id).bind(balance);
        match open.execute(connection).await {
            Ok(_) => Ok(true),
            Err(error) => match error.as_database_error() {
                Some(refused) if refused.is_unique_violation() => Ok(false),
                _ => Err(error),
            },
        }
    }
}
