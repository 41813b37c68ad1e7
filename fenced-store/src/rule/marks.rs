//! Reads the tables of the store rule.

use lock_core::{FencingToken, Issuer, ResourceName};

#[cfg(any(feature = "mysql", feature = "sqlite"))]
use crate::rule::{Mark, Standing};
use crate::{FenceError, HighWater, dialect::Operations};

/// The mark of a resource, as this connection sees it.
pub(crate) async fn high_water<DB: Operations>(
    connection: &mut DB::Connection,
    resource: &ResourceName,
) -> Result<Option<HighWater>, FenceError> {
    let rows = DB::look(connection, &DB::mark(resource), &[]).await?;
    rows.first().map(high_water_of::<DB>).transpose()
}

fn high_water_of<DB: Operations>(row: &DB::Row) -> Result<HighWater, FenceError> {
    Ok(HighWater {
        token: token::<DB>(row, 0)?,
        issuer: word::<DB, _>(row, 1)?,
    })
}

/// The only lock service whose tokens are accepted; `None` before the first claim.
pub(crate) async fn issuer<DB: Operations>(
    connection: &mut DB::Connection,
) -> Result<Option<Issuer>, FenceError> {
    let rows = DB::look(connection, DB::ISSUER, &[]).await?;
    rows.first().map(|row| word::<DB, _>(row, 0)).transpose()
}

/// The greatest token of a mark that was forgotten; `None` if no mark ever was.
pub(crate) async fn floor<DB: Operations>(
    connection: &mut DB::Connection,
) -> Result<Option<FencingToken>, FenceError> {
    let rows = DB::look(connection, DB::FLOOR, &[]).await?;
    let floor = rows.first().map(|row| DB::number(row, 0)).transpose()?;
    let floor = floor.filter(|floor| *floor > 0);
    floor
        .map(|floor| floor.try_into().map_err(undecodable))
        .transpose()
}

/// The mark with its holder, by the query [`Operations::mark`] or a variant of it, or else the
/// floor.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) async fn standing<DB: Operations>(
    connection: &mut DB::Connection,
    query: &str,
) -> Result<Standing, FenceError> {
    let rows = DB::look(connection, query, &[]).await?;
    standing_of::<DB>(connection, rows.first()).await
}

/// The mark or the floor, from a row whose first columns are token, issuer and holder.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) async fn standing_of<DB: Operations>(
    connection: &mut DB::Connection,
    row: Option<&DB::Row>,
) -> Result<Standing, FenceError> {
    Ok(match row {
        Some(row) => Standing::Marked(mark_of::<DB>(row)?),
        None => Standing::Unmarked {
            floor: floor::<DB>(connection).await?,
        },
    })
}

#[cfg(any(feature = "mysql", feature = "sqlite"))]
fn mark_of<DB: Operations>(row: &DB::Row) -> Result<Mark, FenceError> {
    Ok(Mark::new(high_water_of::<DB>(row)?, DB::text(row, 2)?))
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

/// The error for a value in the tables that this crate did not write.
fn undecodable(error: impl std::error::Error + Send + Sync + 'static) -> FenceError {
    let source = sqlx::Error::Decode(error.into());
    FenceError::Db { source }
}
