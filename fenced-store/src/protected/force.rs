use lock_core::{ForceReleased, Holder, ResourceName, Sequencer};
use tracing::debug;

use super::{Protected, ProtectedError};
use crate::{Dialect, FenceError};

/// How often the store is asked to shut the former holder out, including the first time.
const ATTEMPTS: u32 = 3;

/// For operators.
impl<DB: Dialect> Protected<DB> {
    /// Ends the lease of the present holder of a resource, and shuts that holder out of the store
    /// at once, whether or not anybody acquires the resource next.
    ///
    /// First the lease is ended, as by [`LockManager::force_release`](lock_core::LockManager),
    /// which yields a token between that lease's and the next one granted. Then that token is
    /// claimed in the store for nobody. In between the holder may still commit, as before; once
    /// this has returned, nothing that it sends is accepted. The next holder is not shut out: its
    /// token is greater, and if it has already claimed it, there is nothing left to do.
    ///
    /// # Errors
    /// Those of [`LockManager::force_release`](lock_core::LockManager), with the store untouched;
    /// then those of [`FencedStore::claim`](crate::FencedStore::claim), with the lease ended and
    /// the store perhaps not told: an open transaction of the holder may be in the way. A second
    /// call then finds no holder and returns [`ForceReleased::NotHeld`]: acquire the resource
    /// instead, which shuts out all earlier holders.
    ///
    /// # Cancel safety
    /// The lease may or may not have ended, and the store may or may not have been told.
    pub async fn force_release(
        &self,
        resource: &ResourceName,
    ) -> Result<ForceReleased, ProtectedError> {
        let forced = self.locks.force_release(resource).await?;
        if let ForceReleased::Ended { revocation, .. } = &forced {
            // Nobody knows this holder: its claim shuts out earlier holders and lets nobody in.
            let (issuer, nobody) = (self.locks.issuer().clone(), Holder::random());
            let revocation = Sequencer::new(issuer, resource.clone(), *revocation, nobody);
            self.revoke(&revocation).await?;
        }
        Ok(forced)
    }

    async fn revoke(&self, revocation: &Sequencer) -> Result<(), FenceError> {
        let mut attempt = 1;
        loop {
            match self.store.claim(revocation).await {
                // A later holder has claimed, or the lock service is behind the store: either way
                // the former holder is already shut out.
                Ok(()) | Err(FenceError::Stale { .. }) => return Ok(()),
                Err(error) if error.is_retryable() && attempt < ATTEMPTS => {
                    debug!(%error, "the holder is not shut out yet, trying again");
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
