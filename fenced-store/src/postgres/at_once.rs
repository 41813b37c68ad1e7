//! A single statement of the user, which is fenced, executed and committed in one round trip.

use std::time::Duration;

use futures_util::TryStreamExt;
use lock_core::Sequencer;
use sqlx::{
    Arguments, AssertSqlSafe, Connection, Either, Encode, Executor, PgConnection, PgPool, Postgres,
    SqlSafeStr, SqlStr, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, types::PgRecordEncoder},
    query::Query,
};

use super::{
    calls::rounded_up_ms,
    errors::{is_statement_gone, nothing_is_stored, of_fused},
};
use crate::{
    FenceError,
    dialect::{Errors, Statement},
    transaction::{
        begin_request::BeginRequest,
        leaked::{past_leaked, unless_read_only},
    },
};

/// Whether a statement can be fenced as it is: it neither begins nor ends a transaction, and it
/// calls no procedure that does. Any other statement takes the steps of a transaction.
pub(super) fn fits(statement: &str) -> bool {
    let word: &str = statement.trim_start();
    let end = word.find(|letter: char| !letter.is_ascii_alphabetic());
    let word = &word[..end.unwrap_or(word.len())];
    ["DELETE", "INSERT", "MERGE", "UPDATE", "WITH"]
        .iter()
        .any(|write| word.eq_ignore_ascii_case(write))
}

/// Returns the number of rows that the statement affected. The message is a transaction of its own.
pub(super) async fn execute(
    pool: &PgPool,
    lock_timeout: Option<Duration>,
    request: &BeginRequest,
    statement: &Statement<Postgres>,
) -> Result<u64, FenceError> {
    let mut arguments = statement.arguments.clone();
    let mut fences: usize = 0;
    for fence in request.fences() {
        let lock_timeout_ms = lock_timeout.map(rounded_up_ms);
        let fence = StatementFence(fence.sequencer(), lock_timeout_ms);
        arguments.add(fence).map_err(sqlx::Error::Encode)?;
        fences += 1;
    }
    let sql = marked(statement.sql.as_str(), fences);
    let send = || send(pool, sql.clone(), arguments.clone(), statement.persistent);
    past_leaked(pool, send)
        .await
        .map_err(of_fused)?
        .map_err(Postgres::of_commit)
}

/// The outer error means that nothing was committed. The inner error comes from the commit, or
/// means that there was no answer.
async fn send(
    pool: &PgPool,
    sql: SqlStr,
    arguments: PgArguments,
    persistent: bool,
) -> Result<Result<u64, sqlx::Error>, sqlx::Error> {
    let mut connection = pool.acquire().await?;
    if connection.is_in_transaction() {
        return Err(sqlx::Error::InvalidSavePointStatement);
    }
    let query = || sqlx::query_with(sql.clone(), arguments.clone()).persistent(persistent);
    let written = match write(&mut connection, query()).await {
        // A statement that is not persistent has no name, and a connection has only one such
        // statement. In sqlx 0.9.0 the look-up of a type replaces it, and that happens only once.
        Err(error) if is_statement_gone(&error) => write(&mut connection, query()).await,
        result => result,
    };
    unless_read_only(&mut connection, written)
}

async fn write(
    connection: &mut PgConnection,
    query: Query<'_, Postgres, PgArguments>,
) -> Result<Result<u64, sqlx::Error>, sqlx::Error> {
    let mut results = connection.fetch_many(query);
    let mut affected = None;
    // Reads all results, because a deferred constraint fails after the statement is complete.
    loop {
        match results.try_next().await {
            Ok(Some(Either::Left(done))) => affected = Some(done.rows_affected()),
            Ok(Some(Either::Right(_))) => {}
            Ok(None) => break,
            Err(error) if affected.is_none() && nothing_is_stored(&error) => return Err(error),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(affected.ok_or(sqlx::Error::RowNotFound))
}

/// The statement of the user with a comment at its end. sqlx keeps prepared statements by their
/// text, and the same text without a fence has other arguments. The line break ends a comment that
/// the user may have left open.
fn marked(statement: &str, fences: usize) -> SqlStr {
    AssertSqlSafe(format!(
        "{statement}\n-- fenced-store: the last {fences} arguments are fences"
    ))
    .into_sql_str()
}

/// A value of the type `fenced.statement_fence`. The database makes it only in a transaction that
/// began with this statement, and only after the check of the fence. The statement itself does not
/// use the value.
struct StatementFence<'a>(&'a Sequencer, Option<i32>);

impl Type<Postgres> for StatementFence<'_> {
    /// sqlx asks the server for the number of the type, once for each connection.
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("fenced.statement_fence")
    }
}

impl Encode<'_, Postgres> for StatementFence<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let Self(sequencer, lock_timeout_ms) = self;
        let mut grant = PgRecordEncoder::new(buffer);
        grant
            .encode(sequencer.resource().as_str())?
            .encode(i64::from(sequencer.token()))?
            .encode(sequencer.holder().digest().as_bytes())?
            .encode(sequencer.issuer().as_str())?
            .encode(*lock_timeout_ms)?;
        grant.finish();
        Ok(IsNull::No)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a statement that would end the transaction in which it is checked.
    #[test]
    fn only_writes_are_fenced_as_they_stand() {
        for statement in [
            "update accounts",
            "\n INSERT INTO a",
            "With a AS",
            "DELETE\tFROM a",
        ] {
            assert!(fits(statement), "{statement}");
        }
        for statement in [
            "COMMIT",
            "BEGIN",
            "CALL f()",
            "DO $$",
            "-- a\nCOMMIT",
            "",
            "WITHOUT",
        ] {
            assert!(!fits(statement), "{statement}");
        }
    }
}
