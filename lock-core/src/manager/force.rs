use super::{Inner, LockManager, named};
use crate::{
    Error, FencingToken, Forced, HolderView, InvalidName, Listed, Operation, ResourceName,
};

/// The result of a forced release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a lease was ended, or there was none"
)]
pub enum ForceReleased {
    /// This holder's lease has ended.
    Ended {
        /// The holder that was ended: fingerprint, token and note.
        holder: HolderView,
        /// A token that no holder gets. It is greater than the holder's token, and less than any
        /// token that is granted later.
        ///
        /// A store that claims this token refuses the holder from then on.
        revocation: FencingToken,
    },
    /// The resource was free, or the holder gave it back before the request arrived. Nothing
    /// changed.
    NotHeld,
}

/// For operators.
impl LockManager {
    /// Ends the lease of the present holder of a resource, and hands the resource to the next in
    /// line.
    ///
    /// This looks first and ends the lease that it saw, never a lease that was granted after the
    /// look. The holder learns of the loss at its next renewal. Until then the holder goes on
    /// writing: **the store does not know yet**. The store refuses these writes when another holder
    /// has acquired the resource and claimed it. With `FencedLocks::force_release` of the crate
    /// `fenced-store` it refuses them at once.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lock_core::{ForceReleased, LockManager};
    ///
    /// # use std::sync::Arc;
    /// # use lock_core::memory::MemoryBackend;
    /// let locks = LockManager::builder().build(MemoryBackend::default())?;
    /// let hung = locks.acquire("nightly").metadata("node 7").await?;
    /// match locks.force_release(hung.resource()).await? {
    ///     ForceReleased::Ended { holder, revocation } => {
    ///         assert_eq!(holder.metadata.unwrap().as_str(), "node 7");
    ///         assert!(revocation > hung.token());
    ///     }
    ///     ForceReleased::NotHeld => unreachable!("it was not released"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) with the outcome unknown if no
    /// answer came: the lease may have ended.
    /// [`ErrorKind::TokensExhausted`](crate::ErrorKind::TokensExhausted) or
    /// [`ErrorKind::CounterBroken`](crate::ErrorKind::CounterBroken) if there is no token to revoke
    /// with: nothing has ended.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported);
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the name is not valid.
    ///
    /// # Cancel safety
    /// The lease may or may not have ended. Nothing else is left behind.
    pub async fn force_release<N>(&self, resource: N) -> Result<ForceReleased, Error>
    where
        N: TryInto<ResourceName>,
        N::Error: Into<InvalidName>,
    {
        let resource = &named(resource, Operation::ForceRelease)?;
        let Inner { backend, .. } = &*self.inner;
        let inspection = self.inner.answered(|| backend.inspect(resource)).await?;
        let Some(holder) = inspection.holder else {
            return Ok(ForceReleased::NotHeld);
        };
        let force = || backend.force_release(resource, holder.token);
        match self.inner.answered_once(force).await? {
            Forced::Ended { revocation } => {
                tracing::warn!(
                    resource = resource.as_str(),
                    holder = holder.fingerprint,
                    token = holder.token.get(),
                    "released by force"
                );
                Ok(ForceReleased::Ended { holder, revocation })
            }
            Forced::NotHeld => Ok(ForceReleased::NotHeld),
        }
    }

    /// Everything that is held or waited for, sorted by name.
    ///
    /// The list may be out of date when it arrives. Resources that change while the lock service is
    /// scanned may or may not be in it. On Redis the scan goes through all keys, in small steps.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if no answer came,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// # Cancel safety
    /// Cancel safe: nothing changes.
    pub async fn list(&self) -> Result<Vec<Listed>, Error> {
        let Inner { backend, .. } = &*self.inner;
        let mut listed = self.inner.answered(|| backend.list()).await?;
        listed.sort_by(|one, other| one.resource.cmp(&other.resource));
        Ok(listed)
    }
}
