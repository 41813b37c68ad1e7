use std::time::Duration;

use lock_core::{ForceReleased, Holder, ResourceName, Sequencer};
use tracing::debug;

use super::{FencedLockError, FencedLocks};
use crate::{Dialect, FenceError};

/// How often the store is asked to shut the former holder out, including the first time.
const ATTEMPTS: u32 = 3;

/// For operators.
impl<DB: Dialect> FencedLocks<DB> {
    /// Ends the lease of the present holder of a resource, and shuts that holder out of the store
    /// at once, whether or not anybody acquires the resource next.
    ///
    /// First the lease is ended, as by [`LockManager::force_release`](lock_core::LockManager),
    /// which yields a token between that lease's and the next one granted. Then that token is
    /// claimed in the store for nobody. In between the holder may still commit, as before; once
    /// this has returned, nothing that it sends is accepted. The next holder is not shut out: its
    /// token is greater, and if it has already claimed it, there is nothing left to do.
    ///
    /// If nobody holds the resource, but somebody has claimed it before, it is acquired for a
    /// moment, without waiting: the claim shuts out everybody who held it until then. So a call
    /// that failed half way may be made again; but look first who holds it now, because whoever
    /// that is loses its lease, and it may be the next holder, at work as it should be.
    ///
    /// # Errors
    /// Those of [`LockManager::force_release`](lock_core::LockManager), with the store untouched;
    /// the lease may have ended, if the [outcome](lock_core::Error::outcome) is unknown. Then those
    /// of [`FencedStore::claim`](crate::FencedStore::claim), with the lease ended and the store
    /// perhaps not told: an open transaction of the holder may be in the way. Make the call again;
    /// if it finds no holder, it shuts out the one before, and returns [`ForceReleased::NotHeld`].
    /// If nobody holds the resource, those of [`acquire`](Self::acquire): with
    /// [`ErrorKind::WaitTimeout`](lock_core::ErrorKind::WaitTimeout) nobody was shut out, because
    /// somebody else has acquired it and is to claim it.
    ///
    /// # Cancel safety
    /// The lease may or may not have ended, and the store may or may not have been told. Make the
    /// call again to be sure.
    pub async fn force_release(
        &self,
        resource: &ResourceName,
    ) -> Result<ForceReleased, FencedLockError> {
        let forced = self.locks.force_release(resource).await?;
        match &forced {
            ForceReleased::Ended { revocation, .. } => {
                // Nobody knows this holder: its claim shuts out earlier holders and lets nobody in.
                let (issuer, nobody) = (self.locks.issuer().clone(), Holder::random());
                let revocation = Sequencer::new(issuer, resource.clone(), *revocation, nobody);
                self.revoke(&revocation).await?;
            }
            ForceReleased::NotHeld => self.claim_anew(resource).await?,
        }
        Ok(forced)
    }

    /// Shuts out all earlier holders: the lease of one of them may have ended without the store
    /// being told, by a call that failed half way or by its ttl.
    async fn claim_anew(&self, resource: &ResourceName) -> Result<(), FencedLockError> {
        if self.store.high_water(resource).await?.is_none() {
            // Nobody has ever claimed it. It may be a slip of the pen, which shall leave nothing.
            return Ok(());
        }
        let guard = self.acquire(resource.clone()).wait(Duration::ZERO).await?;
        if let Err(error) = guard.release().await {
            debug!(%error, "not released, so the lease ends by its ttl");
        }
        Ok(())
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
