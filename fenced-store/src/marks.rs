//! Reading the tables of the store rule, for the databases whose rule is in `rule.rs`.

use lock_core::{Issuer, ResourceName};
use sqlx::{Database, Encode, Executor, FromRow, IntoArguments, Type};

use crate::{FenceError, high_water::columns::undecodable, rule::Mark};

/// Reads the last committed mark, or the one that this transaction sees.
#[cfg(feature = "mysql")]
pub(crate) const MARK: &str =
    "SELECT token, holder, issuer FROM fenced_high_water_mark WHERE resource = ?";

/// The only lock service whose tokens are accepted.
pub(crate) const ISSUER: &str = "SELECT name FROM fenced_lock_service";

/// Reads a mark by `query`, which is `MARK` or has its columns and its one parameter.
pub(crate) async fn mark<DB: Database>(
    connection: &mut DB::Connection,
    query: &'static str,
    resource: &ResourceName,
    of_our_call: fn(sqlx::Error) -> FenceError,
) -> Result<Option<Mark>, FenceError>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'q> &'q str: Encode<'q, DB> + Type<DB>,
    for<'r> (i64, String, String): FromRow<'r, DB::Row>,
    DB::Arguments: IntoArguments<DB>,
{
    let mark = sqlx::query_as(query).bind(resource.as_str());
    let row = mark.fetch_optional(connection).await.map_err(of_our_call)?;
    row.map(Mark::from_columns).transpose()
}

/// Reads the issuer by `query`, which is [`ISSUER`] or has its column; `None` before the first
/// claim.
pub(crate) async fn issuer<DB: Database>(
    connection: &mut DB::Connection,
    query: &'static str,
    of_our_call: fn(sqlx::Error) -> FenceError,
) -> Result<Option<Issuer>, FenceError>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> (String,): FromRow<'r, DB::Row>,
    DB::Arguments: IntoArguments<DB>,
{
    let name = sqlx::query_as(query).fetch_optional(connection).await;
    let name: Option<(String,)> = name.map_err(of_our_call)?;
    name.map(|(name,)| Issuer::new(name).map_err(undecodable))
        .transpose()
}
