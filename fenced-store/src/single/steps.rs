use sqlx::{IntoArguments, database::HasStatementCache, query::Query};

use super::Statement;
use crate::{Begin, Dialect, FenceError, Receipt, dialect::sealed::Operations};

/// Begins, executes and commits, for databases that cannot do it in one step.
pub(crate) async fn in_three_steps<DB: Operations>(
    begin: Begin<'_, DB>,
    statement: Statement<DB>,
) -> Result<(u64, Receipt), FenceError> {
    let mut tx = begin.await?;
    let rows_affected = DB::run(&mut tx, statement).await?;
    Ok((rows_affected, tx.commit().await?))
}

impl<DB: Dialect> Statement<DB> {
    pub(crate) fn into_query(self) -> Query<'static, DB, DB::Arguments>
    where
        DB::Arguments: IntoArguments<DB>,
        DB: HasStatementCache,
    {
        sqlx::query_with(self.sql, self.arguments).persistent(self.persistent)
    }
}
