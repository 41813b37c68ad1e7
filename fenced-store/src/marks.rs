//! Reading the tables of the store rule.

use lock_core::{FencingToken, Issuer, ResourceName};

use crate::{FenceError, HighWater, dialect::sealed::Operations};
#[cfg(any(feature = "mysql", feature = "sqlite"))]
use crate::{rule::Mark, statement::Value};

/// The mark of a resource, as this connection sees it.
pub(crate) async fn high_water<DB: Operations>(
    connection: &mut DB::Connection,
    resource: &ResourceName,
) -> Result<Option<HighWater>, FenceError> {
    let rows = DB::rows(connection, DB::mark(resource)).await;
    let mark = |row| {
        Ok(HighWater {
            token: token::<DB>(row, 0)?,
            issuer: word::<DB, _>(row, 1)?,
        })
    };
    rows.map_err(DB::of_our_call)?.first().map(mark).transpose()
}

/// The only lock service whose tokens are accepted; `None` before the first claim.
pub(crate) async fn issuer<DB: Operations>(
    connection: &mut DB::Connection,
) -> Result<Option<Issuer>, FenceError> {
    let rows = DB::rows(connection, DB::ISSUER.to_owned()).await;
    let rows = rows.map_err(DB::of_our_call)?;
    rows.first().map(|row| word::<DB, _>(row, 0)).transpose()
}

/// Reads a mark by a query with the columns `token`, `holder` and `issuer`, and the resource as its
/// one parameter.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) async fn mark<DB: Operations>(
    connection: &mut DB::Connection,
    query: &str,
    resource: &ResourceName,
) -> Result<Option<Mark>, FenceError> {
    let query = DB::statement(query.to_owned(), &[Value::Text(resource.as_str())])?;
    let rows = DB::select(connection, query.kept()).await;
    let rows = rows.map_err(DB::of_our_call)?;
    rows.first().map(mark_of::<DB>).transpose()
}

/// The mark in a row that begins with these columns.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) fn mark_of<DB: Operations>(row: &DB::Row) -> Result<Mark, FenceError> {
    let (token, issuer) = (token::<DB>(row, 0)?, word::<DB, _>(row, 2)?);
    Ok(Mark::new(HighWater { token, issuer }, DB::text(row, 1)?))
}

/// The token in a column.
pub(crate) fn token<DB: Operations>(
    row: &DB::Row,
    column: usize,
) -> Result<FencingToken, FenceError> {
    DB::number(row, column)?.try_into().map_err(undecodable)
}

/// The name of a resource or of a lock service in a column.
pub(crate) fn word<DB, T>(row: &DB::Row, column: usize) -> Result<T, FenceError>
where
    DB: Operations,
    T: TryFrom<String, Error: std::error::Error + Send + Sync + 'static>,
{
    DB::text(row, column)?.try_into().map_err(undecodable)
}

/// The error when the tables contain something that this crate did not write.
fn undecodable(error: impl std::error::Error + Send + Sync + 'static) -> FenceError {
    let source = sqlx::Error::Decode(error.into());
    FenceError::Db { source }
}
