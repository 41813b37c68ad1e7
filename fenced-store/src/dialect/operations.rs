use std::future;

use lock_core::{ResourceName, backend::Runtime};
use sqlx::{Database, Pool, pool::PoolConnection};

use super::{Errors, Queries, Statement, Value};
use crate::{
    FenceError, Storage,
    transaction::{
        begin_request::BeginRequest,
        open_tx::{OpenTx, RollBack},
    },
};

/// The statements of a fenced write; [`Storage`] has its calls.
#[expect(unnameable_types, reason = "what seals `Dialect`")]
#[diagnostic::on_unimplemented(
    message = "a store cannot be in `{Self}`: it is not a supported database of sqlx",
    note = "name the database: `FencedLocks<sqlx::Postgres>`, or `PgFencedLocks` for short"
)]
pub trait Operations:
    Queries
    + Errors
    + RollBack
    + Storage<
        Access = Pool<Self>,
        Session = <Self as Database>::Connection,
        Reading = PoolConnection<Self>,
        Tx = OpenTx<Self>,
    >
{
    /// The number of rows that a statement affected.
    fn rows_affected(result: &Self::QueryResult) -> u64;

    /// Returns the rows of a statement of ours.
    fn look(
        connection: &mut Self::Connection,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, FenceError>> + Send {
        async {
            Self::rows(connection, sql, values)
                .await
                .map_err(Self::of_our_call)
        }
    }

    /// Executes a statement of ours. Returns the number of rows that it has changed, or that needed
    /// no change.
    fn change(
        connection: &mut Self::Connection,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, FenceError>> + Send {
        async {
            let result = Self::run(connection, Self::statement(sql, values)?).await;
            Ok(Self::rows_affected(&result.map_err(Self::of_our_call)?))
        }
    }

    /// The query for the only lock service whose tokens are accepted.
    const ISSUER: &'static str;

    /// The query for the greatest token of a mark that was forgotten; 0 if no mark ever was.
    const FLOOR: &'static str;

    /// The query for the mark of a resource: its token, its issuer and, where the rule is not in
    /// SQL, the kept digest of its holder.
    fn mark(resource: &ResourceName) -> String;

    /// Checks, executes a statement of the user and commits, in one message. Returns the number of
    /// rows that the statement affected; `None` where the work takes several messages; then nothing
    /// was done.
    fn at_once(
        _: &Pool<Self>,
        _: &Self::TxOptions,
        _: &BeginRequest,
        _: &Statement<Self>,
    ) -> impl Future<Output = Option<Result<u64, FenceError>>> + Send {
        future::ready(None)
    }

    /// Executes statements about savepoints, which return no rows. A statement of the user may have
    /// been dropped before them.
    fn savepoint(
        connection: &mut Self::Connection,
        _: &dyn Runtime,
        sql: String,
        _statements: usize,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        async move { Self::rows(connection, &sql, &[]).await.map(drop) }
    }

    /// Fails if the connection is inside a transaction that cannot be ended here.
    fn refuse_leaked(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}
