use std::time::Duration;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use lock_core::backend::support::unlogged;
use sqlx::{ConnectOptions, Pool, Transaction, pool::PoolConnection};
#[cfg(any(feature = "mysql", feature = "postgres"))]
use sqlx_core::transaction::TransactionManager;
use tokio::time::timeout;
use tracing::warn;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::transaction::{open_tx::OpenTx, uninterrupted::uninterrupted};
use crate::{
    FenceError,
    dialect::{Installation, Operations},
    error::classify::is_no_connection,
};

/// How often a call is tried before its error is passed on.
const ATTEMPTS: usize = 3;

/// Runs a call on connections of the pool until it gets one without a leaked transaction. That is
/// a transaction in which somebody left the connection, and which nobody is going to end.
///
/// In sqlx 0.9.0 an application leaks one when it drops the future of its own `pool.begin()`. A
/// write on that connection returns `Ok` and is lost, our claims included. So every call has to
/// refuse it, with an error that `is_leaked` recognises. The connection is closed here.
///
/// If the pool has none in time, the error says why the database takes no other one.
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

/// A pool tries again until its time is up when a server refuses connections, and does not say so.
/// One more attempt does.
async fn why_none<DB: Operations>(pool: &Pool<DB>) -> sqlx::Error {
    let options = pool.connect_options();
    match timeout(Duration::from_secs(1), options.connect()).await {
        Ok(Err(refusal)) if is_no_connection(&refusal) => refusal,
        // The pool is used up, or the server does not answer.
        _ => sqlx::Error::PoolTimedOut,
    }
}

/// After a server has said that it takes no writes its session is not used again: the name of the
/// database may lead to another server by now, and a pool keeps sessions for as long as they live.
pub(crate) fn unless_read_only<DB: Operations, T>(
    connection: &mut PoolConnection<DB>,
    result: Result<T, sqlx::Error>,
) -> Result<T, sqlx::Error> {
    if result.as_ref().is_err_and(DB::is_read_only) {
        connection.close_on_drop();
    }
    result
}

/// The same for an error of ours.
#[cfg(feature = "mysql")]
pub(crate) fn says_read_only<DB: Operations>(error: &FenceError) -> bool {
    match error {
        FenceError::Busy { source } | FenceError::Db { source } => DB::is_read_only(source),
        _ => false,
    }
}

/// The error of a call for which its session has done nothing yet. A session that has ended is then
/// nothing to stop for: the same call gets another one.
pub(crate) fn before_anything<DB: Operations>(source: sqlx::Error) -> FenceError {
    if DB::is_session_over(&source) || matches!(source, sqlx::Error::Io(_)) {
        return FenceError::Busy { source };
    }
    DB::of_our_call(source)
}

/// A connection to read what is committed by now. In a leaked transaction, a query may see what was
/// committed long ago, whatever has happened since.
///
/// # Errors
/// If the pool has none, or the server does not answer.
pub async fn to_read<DB: Operations>(pool: &Pool<DB>) -> Result<PoolConnection<DB>, FenceError> {
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

/// A connection that is given back queues behind the idle ones, so all idle ones have to be looked
/// at. Those on their way back, our own of a moment ago among them, are not idle yet.
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

/// Begins by a text, in a transaction that sqlx counts, and whose rollback is waited for that long.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) async fn begin_counted<DB: Operations>(
    pool: &Pool<DB>,
    begin: sqlx::SqlStr,
    tx_name: crate::transaction::tx_name::TxName,
    patience: Option<std::time::Duration>,
) -> Result<OpenTx<DB>, sqlx::Error> {
    past_leaked(pool, || async {
        let (begin, pool) = (begin.clone(), pool.clone());
        let mut connection = pool.acquire().await?;
        uninterrupted(async move {
            let begun = DB::TransactionManager::begin(&mut connection, Some(begin));
            let begun = unlogged(begun).await;
            unless_read_only(&mut connection, begun)?;
            Ok(OpenTx::new(&pool, connection, tx_name, patience))
        })
        .await
    })
    .await
}
