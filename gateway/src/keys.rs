//! The table of idempotency keys, the only table that the gateway itself keeps in the database.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod databases;
#[cfg(feature = "mysql")]
mod mysql;

use fenced_store::Dialect;

/// A database that remembers idempotency keys beside its high-water marks.
pub trait KeyTable: Dialect {
    /// Creates the table if it does not exist, even if two gateways start at once. If the table
    /// exists, the role needs no right to create tables, but the statement fails if the role may
    /// not use the table.
    const CREATE: &'static str;

    /// Returns the first request of an idempotency key: this one, unless it was used before. `now`
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
