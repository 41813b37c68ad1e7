/// A database that can hold high-water marks: Postgres, SQLite, MySQL or MariaDB. Sealed.
///
/// Everything else is written once, generic over the database.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no database of sqlx that a store can be in",
    note = "name the database: `FencedLocks<sqlx::Postgres>`, or `PgFencedLocks` for short"
)]
pub trait Dialect: sealed::Operations + sealed::Installation {}

impl<DB: sealed::Operations + sealed::Installation> Dialect for DB {}

pub(crate) mod sealed {
    use std::{fmt, future, time::Duration};

    use lock_core::{ResourceName, Sequencer};
    use sqlx::{Pool, SqlStr};

    use crate::{
        FenceError, Protection, Rights,
        admin::order::Administer,
        begin_request::BeginRequest,
        jobs::JobRows,
        migrations::wording::Migrations,
        open_tx::{OpenTx, RollBack},
        queries::Queries,
        statement::{Statement, Value},
    };

    /// What the errors of a database mean.
    #[expect(unnameable_types, reason = "what seals `Dialect`")]
    pub trait Errors {
        /// An error of one of our own calls: a missing table is then ours, not the user's.
        fn of_our_call(source: sqlx::Error) -> FenceError;

        /// An error of one of our own commits: whether anything may have been committed.
        fn of_commit(source: sqlx::Error) -> FenceError;

        /// Whether a call was refused because its connection is already inside a transaction.
        fn is_leaked(error: &sqlx::Error) -> bool;

        /// Whether a write was refused because the database takes none.
        fn is_read_only(_: &sqlx::Error) -> bool {
            false
        }

        /// Whether the server has ended the session, or is about to.
        fn is_session_over(_: &sqlx::Error) -> bool {
            false
        }

        /// Whether the role lacks a right.
        fn is_denied(_: &sqlx::Error) -> bool {
            false
        }
    }

    /// What a fenced write needs of a database at run time.
    ///
    /// `claim` may leave a connection in an open transaction when its future is dropped: callers
    /// run it through [`uninterrupted`](crate::uninterrupted::uninterrupted).
    #[expect(unnameable_types, reason = "what seals `Dialect`")]
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is no database of sqlx that a store can be in",
        note = "name the database: `FencedLocks<sqlx::Postgres>`, or `PgFencedLocks` for short"
    )]
    pub trait Operations: Queries + Errors + RollBack {
        /// Options for beginning transactions, beyond the store rule.
        type TxOptions: Clone + fmt::Debug + Default + Send + Sync + 'static;

        /// How long to wait for other transactions of a resource, if the options set a limit.
        fn lock_timeout(_: &Self::TxOptions) -> Option<Duration> {
            None
        }

        /// How many rows a statement affected.
        fn rows_affected(result: &Self::QueryResult) -> u64;

        /// The rows of a statement of ours.
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

        /// Executes a statement of ours. Returns how many rows it has changed, or has found as they
        /// should be.
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

        /// Reads the only lock service whose tokens are accepted.
        const ISSUER: &'static str;

        /// Reads the mark of a resource: its token, its issuer and, where the rule is not in SQL,
        /// the kept digest of its holder.
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

        /// Commits, and releases this lease in the same message, in a transaction of its own after
        /// the commit, if the database can be a lock service. Returns whether that was answered.
        fn commit_and_release(
            tx: OpenTx<Self>,
            _lease_name: &str,
            _: &Sequencer,
        ) -> impl Future<Output = Result<bool, FenceError>> + Send {
            async { Self::commit(tx).await.map(|()| false) }
        }

        /// Checks, executes a statement of the user and commits, in one message; returns how many
        /// rows it affected. `None` where that takes several steps: then nothing was done.
        fn at_once(
            _: &Pool<Self>,
            _: &Self::TxOptions,
            _: &BeginRequest,
            _: &Statement<Self>,
        ) -> impl Future<Output = Option<Result<u64, FenceError>>> + Send {
            future::ready(None)
        }

        /// Called before the user gets the connection of a fenced transaction: if sqlx has ended
        /// that transaction, no further statement must get through. A database that cannot do this
        /// at once, without waiting, does nothing.
        fn seal_if_over(_: &mut Self::Connection) {}

        /// Fails if the connection is inside a transaction that cannot be ended here.
        fn refuse_leaked(
            connection: &mut Self::Connection,
        ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
    }

    /// What is done to a database before a fenced write, or by its administrators.
    #[expect(unnameable_types, reason = "what seals `Dialect`")]
    pub trait Installation: Operations {
        /// Carries out administrators' orders.
        type Admin: Administer<Self>;

        /// Keeps the tables of jobs.
        type Jobs: JobRows<Self>;

        /// The migrations of our tables.
        fn migrations() -> Migrations;

        /// Applies the missing migrations. Concurrent callers do not interfere with each other.
        fn apply_migrations(
            pool: &Pool<Self>,
        ) -> impl Future<Output = Result<(), FenceError>> + Send;

        /// Fails if the role must use nothing of ours, because what another role has made would run
        /// with its rights. Without schemas there is nothing to check.
        fn check_owner(_: &Pool<Self>) -> impl Future<Output = Result<(), FenceError>> + Send {
            future::ready(Ok(()))
        }

        /// Fails unless all migrations were applied.
        fn check_migrations(
            pool: &Pool<Self>,
        ) -> impl Future<Output = Result<(), FenceError>> + Send;

        /// Fails unless the role has these rights. All migrations were applied, or the role may not
        /// read whether they were. Without roles there is nothing to check.
        fn check_rights(
            _: &Pool<Self>,
            _: Rights,
        ) -> impl Future<Output = Result<(), FenceError>> + Send {
            future::ready(Ok(()))
        }

        /// Has the server write something to its disk and leaves nothing behind.
        fn try_to_write(pool: &Pool<Self>) -> impl Future<Output = Result<(), FenceError>> + Send;

        /// Begins a transaction of ours that is not fenced, and may write.
        fn begin_unfenced() -> SqlStr;

        /// Creates the triggers of a protected table, if they do not exist yet.
        fn protect(
            pool: &Pool<Self>,
            protection: &Protection,
        ) -> impl Future<Output = Result<(), FenceError>> + Send;

        /// The names of protected tables, or of their triggers.
        const GUARDED: &'static str;

        /// Drops the triggers of a protected table.
        fn unprotect(
            pool: &Pool<Self>,
            protection: &Protection,
        ) -> impl Future<Output = Result<(), FenceError>> + Send;
    }
}
