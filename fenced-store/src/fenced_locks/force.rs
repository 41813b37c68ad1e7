use std::time::Duration;

use lock_core::{ForceReleased, Holder, ResourceName, Sequencer};
use tracing::debug;

use super::{FencedLockError, FencedLocks};
use crate::{FenceError, Storage};

/// The number of attempts to shut the former holder out of the store, including the first.
const ATTEMPTS: u32 = 3;

/// For operators.
impl<DB: Storage> FencedLocks<DB> {
    /// Ends the lease of the present holder of a resource, and shuts that holder out of the store
    /// at once, even if no other holder follows.
    ///
    /// First it ends the lease as [`LockManager::force_release`](lock_core::LockManager) does,
    /// which returns a token between that of the lease and that of the next one. Then it claims
    /// that token in the store, for a holder that does not exist. Until then the former holder may
    /// still commit. When the call has returned, the store accepts no write of the former holder.
    /// The next holder is not shut out, because its token is greater. If the next holder has
    /// already claimed, there is nothing left to do.
    ///
    /// If the resource has no holder, but was claimed before, the call acquires it for a moment,
    /// without waiting. That claim shuts out all earlier holders. So a call that failed half way
    /// may be repeated. Look at the present holder before you repeat it, because the repeated call
    /// ends the lease of that holder, which may be the rightful next one.
    ///
    /// # Errors
    /// - Those of [`LockManager::force_release`](lock_core::LockManager), with the store unchanged.
    ///   The lease may have ended if the [outcome](lock_core::Error::outcome) is unknown.
    /// - Those of [`FencedStore::claim`](crate::FencedStore::claim), after the end of the lease.
    ///   The store may not have the claim, because an open transaction of the holder may keep it
    ///   waiting. Repeat the call. If the repeated call finds no holder, it shuts out the former
    ///   one, and returns [`ForceReleased::NotHeld`].
    /// - Those of [`acquire`](Self::acquire), if the resource has no holder. After
    ///   [`ErrorKind::WaitTimeout`](lock_core::ErrorKind::WaitTimeout) no holder was shut out,
    ///   because another client has acquired the resource and is going to claim it.
    ///
    /// # Cancel safety
    /// The lease may have ended or not, and the store may have the claim or not. Repeat the call to
    /// be sure.
    pub async fn force_release(
        &self,
        resource: &ResourceName,
    ) -> Result<ForceReleased, FencedLockError> {
        let forced = self.locks.force_release(resource).await?;
        match &forced {
            ForceReleased::Ended { revocation, .. } => {
                // No client has this holder, so its claim shuts out earlier holders and lets no
                // other in.
                let (issuer, no_client) = (
                    self.locks.issuer().clone(),
                    Holder::draw(self.locks.runtime()),
                );
                let revocation = Sequencer::new(issuer, resource.clone(), *revocation, no_client);
                self.revoke(&revocation).await?;
            }
            ForceReleased::NotHeld => self.claim_anew(resource).await?,
        }
        Ok(forced)
    }

    /// Shuts out all earlier holders. The lease of such a holder may have ended without a later
    /// claim in the store, because a call failed half way or because its ttl was over.
    async fn claim_anew(&self, resource: &ResourceName) -> Result<(), FencedLockError> {
        if self.store.high_water(resource).await?.is_none() {
            // The resource was never claimed. Its name may be a typing error, which should leave
            // nothing behind.
            return Ok(());
        }
        let look = self.acquire(resource.clone()).wait_or_look(Duration::ZERO);
        let guard = look.await?;
        if let Err(error) = guard.release().await {
            debug!(%error, "not released, so the lease ends by its ttl");
        }
        Ok(())
    }

    async fn revoke(&self, revocation: &Sequencer) -> Result<(), FenceError> {
        let mut attempt = 1;
        loop {
            match self.store.claim(revocation).await {
                // A later holder has claimed, or the lock service is behind the store. The former
                // holder is shut out in both cases.
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
