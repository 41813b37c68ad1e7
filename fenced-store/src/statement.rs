use std::fmt;

use sqlx::{Database, SqlStr};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use sqlx::{IntoArguments, database::HasStatementCache, query::Query};

/// A statement of the user, with its arguments.
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
    expect(dead_code, reason = "for databases, of which there is none")
)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Statement<DB: Database> {
    pub(crate) sql: SqlStr,
    pub(crate) arguments: DB::Arguments,
    pub(crate) persistent: bool,
}

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
impl<DB: Database> Statement<DB> {
    pub(crate) fn into_query(self) -> Query<'static, DB, DB::Arguments>
    where
        DB::Arguments: IntoArguments<DB>,
        DB: HasStatementCache,
    {
        sqlx::query_with(self.sql, self.arguments).persistent(self.persistent)
    }
}

/// Omits the arguments, which may be confidential.
impl<DB: Database> fmt::Debug for Statement<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Statement").field(&self.sql).finish()
    }
}
