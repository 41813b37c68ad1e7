use std::{fmt, future, time::Duration};

use lock_core::{ResourceName, Sequencer, backend::Runtime};
use sqlx::Pool;

use super::{Errors, Queries, Statement, Value};
use crate::{
    FenceError,
    transaction::{
        begin_request::BeginRequest,
        open_tx::{OpenTx, RollBack},
    },
};

/// The calls of a fenced write.
///
/// `claim` may leave a connection in an open transaction when its future is dropped. Callers
/// therefore run it through [`uninterrupted`](crate::transaction::uninterrupted::uninterrupted).
#[expect(unnameable_types, reason = "what seals `Dialect`")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no database of sqlx that a store can be in",
    note = "name the database: `FencedLocks<sqlx::Postgres>`, or `PgFencedLocks` for short"
)]
pub trait Operations: Queries + Errors + RollBack {
    /// The settings of transactions that go beyond the store rule.
    type TxOptions: Clone + fmt::Debug + Default + Send + Sync + 'static;

    /// How long a claim or a `begin` waits for other transactions of its resource, if the options
    /// set a limit.
    fn lock_timeout(_: &Self::TxOptions) -> Option<Duration> {
        None
    }

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

    /// Executes a statement of ours. Returns the number of rows that it has changed, or has found
    /// as they should be.
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

    /// The query for the mark of a resource: its token, its issuer and, where the rule is not in
    /// SQL, the kept digest of its holder.
    fn mark(resource: &ResourceName) -> String;

    /// Raises the mark in a transaction of its own, or finds that it already shows this grant.
    fn claim(
        pool: &Pool<Self>,
        options: &Self::TxOptions,
        sequencer: &Sequencer,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Waits until no transaction of this grant is in progress, then checks the mark.
    fn settle(
        pool: &Pool<Self>,
        options: &Self::TxOptions,
        sequencer: &Sequencer,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Begins a transaction that has checked the marks and keeps claims out until it ends. If
    /// the future is dropped, no transaction stays open.
    fn begin(
        pool: &Pool<Self>,
        options: &Self::TxOptions,
        request: &BeginRequest,
    ) -> impl Future<Output = Result<OpenTx<Self>, FenceError>> + Send;

    /// Commits. `Ok` means that everything since the `begin` is committed and fenced.
    fn commit(tx: OpenTx<Self>) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Commits. If the database can be a lock service, the same message then releases this lease,
    /// in a transaction of its own. Returns whether the release was answered.
    fn commit_and_release(
        tx: OpenTx<Self>,
        _lease_name: &str,
        _: &Sequencer,
    ) -> impl Future<Output = Result<bool, FenceError>> + Send {
        async { Self::commit(tx).await.map(|()| false) }
    }

    /// Checks, executes a statement of the user and commits, in one message. Returns the number of
    /// rows that the statement affected; `None` where the work takes several steps, and then
    /// nothing was done.
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

    /// Called before a statement of ours that follows statements of the user. Fails if the
    /// connection may take the answers to one that was dropped for others.
    fn catch_up(
        _: &mut Self::Connection,
        _: &dyn Runtime,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        future::ready(Ok(()))
    }

    /// Called before the user gets the connection of a fenced transaction: if sqlx has ended that
    /// transaction, no further statement may get through. A database that cannot ensure this
    /// without waiting does nothing.
    fn seal_if_over(_: &mut Self::Connection) {}

    /// Fails if the connection is inside a transaction that cannot be ended here.
    fn refuse_leaked(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}
