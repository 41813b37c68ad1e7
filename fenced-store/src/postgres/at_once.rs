//! A single statement of the user, which is fenced, executed and committed in one round trip.

use std::time::Duration;

use futures_util::TryStreamExt;
use sqlx::{
    Arguments, AssertSqlSafe, Connection, Either, Encode, Executor, PgConnection, PgPool, Postgres,
    Row, SqlSafeStr, SqlStr, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo, types::Oid},
    query::Query,
};

use super::{
    calls::milliseconds,
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

/// Returns the number of rows that the statement affected. The message is a transaction of its own.
pub(super) async fn execute(
    pool: &PgPool,
    lock_timeout: Option<Duration>,
    request: &BeginRequest,
    statement: &Statement<Postgres>,
) -> Result<u64, FenceError> {
    let mut arguments = statement.arguments.clone();
    let sql = fused(
        statement.sql.as_str(),
        arguments.len(),
        request,
        lock_timeout,
    );
    bind(&mut arguments, request).map_err(sqlx::Error::Encode)?;
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
    let (mut only_row, mut completed): (Option<PgRow>, bool) = (None, false);
    // Reads all results, because a deferred constraint fails after the statement is complete.
    loop {
        match results.try_next().await {
            Ok(Some(Either::Left(_))) => completed = true,
            Ok(Some(Either::Right(row))) => only_row = Some(row),
            Ok(None) => break,
            Err(error) if !completed && nothing_is_stored(&error) => return Err(error),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(rows_affected(only_row))
}

fn rows_affected(row: Option<PgRow>) -> Result<u64, sqlx::Error> {
    let count: i64 = row
        .ok_or(sqlx::Error::RowNotFound)?
        .try_get(ROWS_AFFECTED)?;
    Ok(count.unsigned_abs())
}

/// The name of the column with the number of affected rows.
const ROWS_AFFECTED: &str = "rows_affected";

/// The statement of the user inside ours. Its placeholders keep their numbers, and ours follow.
///
/// Columns are computed from left to right, so the checks come first. They run in any case, because
/// the rows are counted afterwards. Postgres does not promise this order, but another order does no
/// harm: a check that fails later rolls the write back, and until then the locks of the checks that
/// have passed keep claims out. The line break ends a comment in the statement of the user.
fn fused(
    statement: &str,
    arguments: usize,
    request: &BeginRequest,
    lock_timeout: Option<Duration>,
) -> SqlStr {
    let lock_timeout = milliseconds(lock_timeout);
    let mut placeholders = (arguments + 1..).map(|number| format!("${number}"));
    let mut next = || placeholders.next().unwrap_or_default();
    let autocommit = next();
    let mut checks = String::new();
    for _ in request.fences() {
        let (resource, token, holder, issuer) = (next(), next(), next(), next());
        checks += &format!(
            "fenced.begin_fenced({resource}, {token}, {holder}, {issuer}, {lock_timeout}), "
        );
    }
    AssertSqlSafe(format!(
        "WITH fenced_write AS ({statement}\nRETURNING 1) \
         SELECT {checks}\
         (SELECT pg_catalog.count(*) FROM fenced_write) AS {ROWS_AFFECTED} \
         WHERE {autocommit}::fenced.autocommit",
    ))
    .into_sql_str()
}

/// Binds the arguments in the order of the placeholders.
fn bind(arguments: &mut PgArguments, request: &BeginRequest) -> Result<(), BoxDynError> {
    arguments.add(Autocommit)?;
    for fence in request.fences() {
        let sequencer = fence.sequencer();
        arguments.add(sequencer.resource().as_str())?;
        arguments.add(i64::from(sequencer.token()))?;
        arguments.add(sequencer.holder().digest())?;
        arguments.add(sequencer.issuer().as_str())?;
    }
    Ok(())
}

/// `true` of the type `fenced.autocommit`. Values of this type only exist outside of transactions.
struct Autocommit;

/// The server infers the type, so sqlx need not ask for its number.
impl Type<Postgres> for Autocommit {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Autocommit {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode(true, buffer)
    }
}
