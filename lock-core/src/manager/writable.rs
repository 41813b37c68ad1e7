use super::LockManager;
use crate::{AttemptRef, Error, Holder, ResourceName};

impl LockManager {
    /// Whether the lock service can change anything now: for probes. Asks it to cancel an attempt
    /// that does not exist, under a random name.
    ///
    /// No client can be in the way, because none knows the name. Where a lock service remembers
    /// cancelled attempts, this is a write, which it forgets as soon as those, within minutes.
    /// ZooKeeper has to be asked by its leader instead. So a standby, a replica, a service without
    /// its majority and one without space fail here, although they can be read.
    ///
    /// NOT a promise about the next request, and not about all parts of a service: it asks the part
    /// that keeps that name. Redis takes this although its memory is full.
    ///
    /// # Errors
    /// The error that keeps the lock service from writing.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn check_writable(&self) -> Result<(), Error> {
        let runtime = self.runtime();
        let name = ResourceName::new(format!("probe:{:032x}", runtime.random()))?;
        let attempt = AttemptRef::new(runtime, name, Holder::draw(runtime));
        self.inner.backend.cancel(&attempt).await
    }
}
