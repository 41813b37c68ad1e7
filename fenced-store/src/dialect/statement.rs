use std::fmt;

use sqlx::{Database, IntoArguments, SqlStr, database::HasStatementCache, query::Query};

/// A statement of the user or of this crate, with its arguments.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Statement<DB: Database> {
    pub(crate) sql: SqlStr,
    pub(crate) arguments: DB::Arguments,
    pub(crate) persistent: bool,
}

/// An argument of a statement of ours.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub enum Value<'a> {
    /// Text.
    Text(&'a str),
    /// A number.
    Number(i64),
}

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
