use std::time::Duration;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use lock_core::backend::support::unlogged;
use sqlx::{ConnectOptions, Pool, Transaction, pool::PoolConnection};
#[cfg(any(feature = "mysql", feature = "postgres"))]
use sqlx_core::transaction::TransactionManager;
use tokio::time::timeout;
use tracing::warn;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::transaction::{
    begin_request::BeginRequest, open_tx::OpenTx, uninterrupted::uninterrupted,
};
use crate::{
    FenceError,
    dialect::{Installation, Operations},
    error::classify::is_no_connection,
};

/// The number of attempts before the error of a call is passed on.
const ATTEMPTS: usize = 3;

/// Runs a call on connections of the pool until it gets a connection without a leaked transaction.
/// A transaction is leaked if the application has left it open on the connection, and nothing is
/// going to end it.
///
/// In sqlx 0.9.0 an application leaks a transaction when it drops the future of its own
/// `pool.begin()`. A write on that connection, such as one of our claims, returns `Ok` and is lost.
/// So every call has to refuse such a connection with an error that `is_leaked` recognises, and the
/// connection is closed here.
///
/// If the pool has no connection in time, the error gives the reason why the database accepts no
/// further connection.
pub(crate) async fn past_leaked<DB, T, F>(
    pool: &Pool<DB>,
    call: impl Fn() -> F,
) -> Result<T, sqlx::Error>
where
    DB: Operations,
    F: Future<Output = Result<T, sqlx::Error>>,
{
    for _ in 1..ATTEMPTS {
        match call().await {
            Err(error) if DB::is_leaked(&error) => close_leaked(pool).await?,
            Err(sqlx::Error::PoolTimedOut) => return Err(why_none(pool).await),
            result => return result,
        }
    }
    call().await
}

/// Returns the error of a refused connection, if there is one. When a server refuses connections, a
/// pool tries again until its time is up, and then reports only the timeout. One more attempt shows
/// the refusal.
async fn why_none<DB: Operations>(pool: &Pool<DB>) -> sqlx::Error {
    let options = pool.connect_options();
    match timeout(Duration::from_secs(1), options.connect()).await {
        Ok(Err(refusal)) if is_no_connection(&refusal) => refusal,
        // The pool is used up, or the server does not answer.
        _ => sqlx::Error::PoolTimedOut,
    }
}

/// Closes the session if the server has answered that it takes no writes. A pool would keep the
/// session, although the name of the database may lead to another server by now.
pub(crate) fn unless_read_only<DB: Operations, T>(
    connection: &mut PoolConnection<DB>,
    result: Result<T, sqlx::Error>,
) -> Result<T, sqlx::Error> {
    if result.as_ref().is_err_and(DB::is_read_only) {
        connection.close_on_drop();
    }
    result
}

/// Whether this error of ours says that the server takes no writes.
#[cfg(feature = "mysql")]
pub(crate) fn says_read_only<DB: Operations>(error: &FenceError) -> bool {
    match error {
        FenceError::Busy { source } | FenceError::Db { source } => DB::is_read_only(source),
        _ => false,
    }
}

/// The error of a call whose session has done nothing yet. If that session has ended, the error is
/// retryable, because the same call gets another session.
pub(crate) fn before_anything<DB: Operations>(source: sqlx::Error) -> FenceError {
    if DB::is_session_over(&source) || matches!(source, sqlx::Error::Io(_)) {
        return FenceError::Busy { source };
    }
    DB::of_our_call(source)
}

/// A connection that reads what is committed now. A leaked transaction may show an older state,
/// because its snapshot may be old.
///
/// # Errors
/// If the pool has no connection, or the server does not answer.
pub(crate) async fn to_read<DB: Operations>(
    pool: &Pool<DB>,
) -> Result<PoolConnection<DB>, FenceError> {
    past_leaked(pool, || async {
        let mut connection = pool.acquire().await?;
        DB::refuse_leaked(&mut connection).await?;
        Ok(connection)
    })
    .await
    .map_err(before_anything::<DB>)
}

/// Begins one of our transactions, which is not fenced.
pub(crate) async fn begin_unfenced<DB: Installation>(
    pool: &Pool<DB>,
) -> Result<Transaction<'static, DB>, FenceError> {
    past_leaked(pool, || pool.begin_with(DB::begin_unfenced()))
        .await
        .map_err(before_anything::<DB>)
}

/// Looks at every idle connection, because a connection that is given back queues behind the idle
/// ones. The loop runs once more than the pool has connections, because a connection that is on its
/// way back, such as that of the failed call, is not idle yet.
async fn close_leaked<DB: Operations>(pool: &Pool<DB>) -> Result<(), sqlx::Error> {
    for _ in 0..=pool.size() {
        let mut connection = pool.acquire().await?;
        if let Err(error) = DB::refuse_leaked(&mut connection).await {
            warn!(
                error = &error as &dyn std::error::Error,
                "closing a pooled connection that was left inside a transaction, \
                 perhaps by a begin whose future was dropped"
            );
            connection.close().await?;
        }
    }
    Ok(())
}

/// Begins with this statement, in a transaction that sqlx counts. Its rollback waits up to
/// `patience` for the answer.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) async fn begin_counted<DB: Operations>(
    pool: &Pool<DB>,
    begin: sqlx::SqlStr,
    request: &BeginRequest,
    patience: Option<std::time::Duration>,
) -> Result<OpenTx<DB>, sqlx::Error> {
    past_leaked(pool, || async {
        let (begin, pool) = (begin.clone(), pool.clone());
        let (tx_name, tasks) = (request.tx_name(), request.tasks().clone());
        let mut connection = pool.acquire().await?;
        uninterrupted(request.tasks().clone(), async move {
            let begun = DB::TransactionManager::begin(&mut connection, Some(begin));
            let begun = unlogged(begun).await;
            unless_read_only(&mut connection, begun)?;
            Ok(OpenTx::new(&pool, connection, tx_name, patience, tasks))
        })
        .await
    })
    .await
}
