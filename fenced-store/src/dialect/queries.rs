//! Statements that all databases of sqlx execute in the same way.

use lock_core::backend::support::unlogged;
use sqlx::{
    Arguments, AssertSqlSafe, ColumnIndex, Database, Decode, Encode, Executor, IntoArguments, Row,
    SqlSafeStr, Type, database::HasStatementCache,
};

use crate::dialect::{Statement, Value};

/// Executes statements, and reads rows of texts and numbers. Every database of sqlx implements it.
///
/// The trait exists because generic code would otherwise have to repeat the bounds of the
/// implementation.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub trait Queries: Database {
    /// The rows of one statement, or of several. Without parameters nothing is prepared, because a
    /// pooler in transaction mode would lose a prepared statement.
    fn rows(
        connection: &mut Self::Connection,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, sqlx::Error>> + Send;

    /// Executes a statement with parameters.
    fn run(
        connection: &mut Self::Connection,
        statement: Statement<Self>,
    ) -> impl Future<Output = Result<Self::QueryResult, sqlx::Error>> + Send;

    /// A statement of ours with its parameters.
    fn statement(sql: &str, values: &[Value<'_>]) -> Result<Statement<Self>, sqlx::Error>;

    /// The text in a column that is not null.
    fn text(row: &Self::Row, column: usize) -> Result<String, sqlx::Error>;

    /// The text in a column, for display. Bytes that are no UTF-8, which only SQLite stores, are
    /// replaced.
    fn shown_text(row: &Self::Row, column: usize) -> Result<String, sqlx::Error>;

    /// The number in a column that is not null.
    fn number(row: &Self::Row, column: usize) -> Result<i64, sqlx::Error>;
}

impl<DB> Queries for DB
where
    DB: Database + HasStatementCache,
    DB::Arguments: IntoArguments<DB>,
    String: Encode<'static, DB> + Type<DB>,
    i64: Encode<'static, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
    for<'r> String: Decode<'r, DB>,
    for<'r> Vec<u8>: Decode<'r, DB>,
    for<'r> i64: Decode<'r, DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    async fn rows(
        connection: &mut DB::Connection,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<DB::Row>, sqlx::Error> {
        if values.is_empty() {
            let statements = sqlx::raw_sql(AssertSqlSafe(sql));
            return unlogged(connection.fetch_all(statements)).await;
        }
        let statement = DB::statement(sql, values)?;
        connection.fetch_all(statement.into_query()).await
    }

    async fn run(
        connection: &mut DB::Connection,
        statement: Statement<DB>,
    ) -> Result<DB::QueryResult, sqlx::Error> {
        connection.execute(statement.into_query()).await
    }

    fn statement(sql: &str, values: &[Value<'_>]) -> Result<Statement<DB>, sqlx::Error> {
        let mut arguments = DB::Arguments::default();
        for value in values {
            match value {
                Value::Text(text) => arguments.add((*text).to_owned()),
                Value::Number(number) => arguments.add(*number),
            }
            .map_err(sqlx::Error::Encode)?;
        }
        Ok(Statement {
            sql: AssertSqlSafe(sql).into_sql_str(),
            arguments,
            // A pooler of PostgreSQL would lose a prepared statement. MySQL needs a persistent
            // statement, because it does not answer the message that closes a statement: the next
            // message would wait 40 ms for the acknowledgement of TCP.
            persistent: DB::NAME != "PostgreSQL",
        })
    }

    fn text(row: &DB::Row, column: usize) -> Result<String, sqlx::Error> {
        row.try_get(column)
    }

    fn shown_text(row: &DB::Row, column: usize) -> Result<String, sqlx::Error> {
        match row.try_get(column) {
            Err(sqlx::Error::ColumnDecode { .. }) => {
                let bytes: Vec<u8> = row.try_get_unchecked(column)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            text => text,
        }
    }

    fn number(row: &DB::Row, column: usize) -> Result<i64, sqlx::Error> {
        row.try_get(column)
    }
}
