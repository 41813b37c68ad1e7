use sqlx::{Pool, Transaction, pool::PoolConnection};
#[cfg(any(feature = "mysql", feature = "postgres"))]
use sqlx_core::transaction::TransactionManager;
use tracing::warn;

use crate::{
    FenceError,
    dialect::sealed::{Installation, Operations},
};
#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::{open_tx::OpenTx, uninterrupted::uninterrupted};

/// How often a call is tried before its error is passed on.
const ATTEMPTS: usize = 3;

/// Runs a call on connections of the pool until it gets one that is not a stray. A stray is a
/// connection inside a transaction that nobody is going to end.
///
/// In sqlx 0.9.0 an application leaves a stray behind when it drops the future of its own
/// `pool.begin()`. A write on a stray returns `Ok` and is lost, our claims included. So every call
/// has to refuse strays, with an error that `is_stray` recognises. Strays are closed here.
pub(crate) async fn past_strays<DB, T, F>(
    pool: &Pool<DB>,
    call: impl Fn() -> F,
) -> Result<T, sqlx::Error>
where
    DB: Operations,
    F: Future<Output = Result<T, sqlx::Error>>,
{
    for _ in 1..ATTEMPTS {
        match call().await {
            Err(error) if DB::is_stray(&error) => close_strays(pool).await?,
            result => return result,
        }
    }
    call().await
}

/// A connection for a look at what is committed by now. On a stray, a look may see what was
/// committed long ago, whatever has happened since.
pub(crate) async fn to_look<DB: Operations>(
    pool: &Pool<DB>,
) -> Result<PoolConnection<DB>, FenceError> {
    past_strays(pool, || async {
        let mut connection = pool.acquire().await?;
        DB::refuse_stray(&mut connection).await?;
        Ok(connection)
    })
    .await
    .map_err(DB::of_our_call)
}

/// Begins one of our transactions, which is not fenced.
pub(crate) async fn begin_unfenced<DB: Installation>(
    pool: &Pool<DB>,
) -> Result<Transaction<'static, DB>, FenceError> {
    past_strays(pool, || pool.begin_with(DB::begin_unfenced()))
        .await
        .map_err(DB::of_our_call)
}

/// A connection that is given back queues behind the idle ones, so all idle ones have to be looked
/// at. Those on their way back, our own of a moment ago among them, are not idle yet.
async fn close_strays<DB: Operations>(pool: &Pool<DB>) -> Result<(), sqlx::Error> {
    for _ in 0..=pool.size() {
        let mut connection = pool.acquire().await?;
        if let Err(error) = DB::refuse_stray(&mut connection).await {
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
    entry: crate::entry::Entry,
    patience: Option<std::time::Duration>,
) -> Result<OpenTx<DB>, sqlx::Error> {
    past_strays(pool, || async {
        let (begin, pool) = (begin.clone(), pool.clone());
        let mut connection = pool.acquire().await?;
        uninterrupted(async move {
            DB::TransactionManager::begin(&mut connection, Some(begin)).await?;
            Ok(OpenTx::new(&pool, connection, entry, patience))
        })
        .await
    })
    .await
}
