//! Writes of one statement.

use sqlx::Execute;

use crate::{Begin, Dialect, FenceError, Receipt, dialect::Statement};

/// The effect of a fenced statement, and the proof that it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    rows_affected: u64,
    receipt: Receipt,
}

impl<DB: Dialect> Begin<'_, DB> {
    /// Executes one statement instead of beginning a transaction for several: checks, writes and
    /// commits.
    ///
    /// In Postgres that is *one* round trip for an `INSERT`, `UPDATE`, `DELETE` or `MERGE`, which
    /// may begin with `WITH`: the statement gets one more argument, and the server checks the mark
    /// when it reads this argument. The statement runs at the isolation level of the session and
    /// with its timeouts. The call takes three steps for any other statement, if the options of the
    /// store set an isolation level, and on SQLite, MySQL and MariaDB. Rows of a `RETURNING` are
    /// not returned.
    ///
    /// A stale grant is an error and never "0 rows": the check is made whether or not the statement
    /// matches anything.
    ///
    /// **If the answer is lost** ([`FenceError::CommitUnknown`]), the statement may not have been
    /// executed *yet*. It may be sent again only if executing it twice does no harm.
    ///
    /// # Errors
    /// Those of [`Begin`], when the grant is refused; then the statement had no effect. Otherwise
    /// the database's errors for the statement; then nothing was stored.
    /// [`FenceError::CommitUnknown`] if no answer came, or if a pooler in front of Postgres may
    /// have made the answer.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, it is not known whether the statement was
    /// executed.
    ///
    /// # Examples
    /// ```no_run
    /// # #[cfg(feature = "postgres")]
    /// # async fn f(
    /// #     guard: fenced_store::FencedGuard<sqlx::Postgres>,
    /// # ) -> Result<(), fenced_store::FenceError> {
    /// let pay = sqlx::query("UPDATE accounts SET balance = balance - $1 WHERE id = $2");
    /// let done = guard.begin().execute(pay.bind(10).bind(42)).await?;
    /// assert_eq!(done.rows_affected(), 1, "no such account");
    /// # Ok(()) }
    /// ```
    pub async fn execute<'q, E>(self, mut statement: E) -> Result<Executed, FenceError>
    where
        E: Execute<'q, DB>,
    {
        let persistent = statement.persistent();
        let arguments = statement.take_arguments().map_err(sqlx::Error::Encode)?;
        let statement = Statement {
            sql: statement.sql(),
            arguments: arguments.unwrap_or_default(),
            persistent,
        };
        let (pool, options) = (self.store.pool(), self.store.tx_options());
        let request = self.request()?;
        match DB::at_once(pool, options, &request, &statement).await {
            Some(executed) => Ok(Executed {
                rows_affected: self.answered(executed)?,
                receipt: self.receipt(),
            }),
            None => self.in_steps(statement).await,
        }
    }

    async fn in_steps(self, statement: Statement<DB>) -> Result<Executed, FenceError> {
        let mut tx = self.await?;
        let executed = DB::run(&mut tx, statement).await?;
        let receipt = tx.commit().await?;
        Ok(Executed {
            rows_affected: DB::rows_affected(&executed),
            receipt,
        })
    }
}

impl Executed {
    /// How many rows were inserted, updated or deleted. 0 means that no row matched, although the
    /// grant was accepted.
    #[must_use]
    pub const fn rows_affected(&self) -> u64 {
        self.rows_affected
    }

    /// The proof that the statement was fenced and is committed.
    #[must_use]
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}
