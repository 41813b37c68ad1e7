use super::{Acquire, LeaseGuard};
use crate::Error;

impl Acquire {
    /// Acquires as configured, runs a section under the lease, and releases it.
    ///
    /// When the lease is lost, the section is dropped at its present await and the loss is
    /// returned.
    ///
    /// # Errors
    /// The section's own error, or the error of acquiring, or [`ErrorKind::Lost`]. A release that
    /// fails is left to the watchdog and not reported: the section's result is returned.
    ///
    /// # Cancel safety
    /// The section is dropped and the watchdog releases the lease.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::{Error, LockManager, Ttl};
    /// use std::time::Duration;
    ///
    /// # use std::sync::Arc;
    /// # use lock_core::memory::MemoryBackend;
    /// let locks = LockManager::builder().build(MemoryBackend::default())?;
    /// let nightly = locks.acquire("nightly").ttl(Ttl::secs(30)).wait(Duration::from_secs(60));
    /// let token = nightly.run(async |guard| Ok::<_, Error>(guard.token())).await?;
    /// println!("ran under {token}");
    /// # Ok(()) }
    /// ```
    ///
    /// [`ErrorKind::Lost`]: crate::ErrorKind::Lost
    pub async fn run<T, E, F>(self, section: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&LeaseGuard) -> Result<T, E>,
        E: From<Error>,
    {
        let guard = self.await?;
        let result = tokio::select! {
            biased;
            // The loss first: a holder that was paused learns of it before its section goes on.
            lost = guard.lost() => Err(Error::from(lost).into()),
            result = section(&guard) => result,
        };
        // After a loss the release is not waited for, because the lease has ended.
        if guard.remaining().is_ok()
            && let Err(error) = guard.release().await
        {
            tracing::debug!(%error, "release failed, the watchdog goes on with it");
        }
        result
    }
}
