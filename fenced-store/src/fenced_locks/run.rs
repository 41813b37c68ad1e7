use std::pin::pin;

use futures_util::future::{Either, select};
use tracing::debug;

use super::{AcquireFenced, FencedGuard, FencedLockError};
use crate::Storage;

impl<DB: Storage> AcquireFenced<DB> {
    /// Acquires as configured, runs a section under the lease, and releases it, as
    /// [`Acquire::run`](lock_core::Acquire::run) does.
    ///
    /// When the lease is lost, the section is dropped at its present await, and the loss is
    /// returned. A commit that was in progress may have happened.
    ///
    /// # Errors
    /// The error of the section, or the error of the acquisition, or
    /// [`FenceError::LeaseLost`](crate::FenceError::LeaseLost). If the release fails, the watchdog
    /// repeats it, and the error is not reported, because the result of the section stands.
    ///
    /// # Cancel safety
    /// The section is dropped and the watchdog releases the lease.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(not(feature = "sqlite"))]
    /// # fn main() {}
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use fenced_store::{FencedLocks, FencedLockError, SqliteFencedStore};
    /// use lock_core::Ttl;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let file = directory.path().join("accounts.db");
    /// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
    /// # let options = SqliteFencedStore::recommended(options.create_if_missing(true));
    /// # let store = SqliteFencedStore::new(sqlx::SqlitePool::connect_with(options).await?);
    /// # store.migrate().await?;
    /// # let locks = palisade::connect("memory:").await?;
    /// let accounts = FencedLocks::new(locks, store);
    /// let nightly = accounts.acquire("account:42").ttl(Ttl::secs(30));
    /// let receipt = nightly
    ///     .run(async |guard| {
    ///         let tx = guard.begin().await?; // write through it
    ///         Ok::<_, FencedLockError>(tx.commit().await?)
    ///     })
    ///     .await?;
    /// println!("written under {}", receipt.token());
    /// # Ok(()) }
    /// ```
    pub async fn run<T, E, F>(self, section: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&FencedGuard<DB>) -> Result<T, E>,
        E: From<FencedLockError>,
    {
        let guard = self.await?;
        let result = until_lost(&guard, section(&guard)).await;
        // After a loss there is nothing to release.
        if guard.remaining().is_ok()
            && let Err(error) = guard.release().await
        {
            debug!(%error, "release failed, the watchdog goes on with it");
        }
        result
    }
}

/// Runs a section until the lease is lost: then the section is dropped at its present await.
///
/// # Errors
/// The error of the section, or the loss.
pub async fn until_lost<DB: Storage, T, E: From<FencedLockError>>(
    guard: &FencedGuard<DB>,
    section: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let (section, lost) = (pin!(section), pin!(guard.lost()));
    // The section is polled first, so its result counts if both are ready.
    match select(section, lost).await {
        Either::Left((result, _)) => result,
        Either::Right((lost, _)) => Err(FencedLockError::from(lost).into()),
    }
}
