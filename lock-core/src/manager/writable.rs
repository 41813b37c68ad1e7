use super::LockManager;
use crate::{AttemptRef, Error, Holder, ResourceName};

impl LockManager {
    /// Checks whether the lock service can write now, for probes. Asks it to cancel an attempt that
    /// does not exist, for a resource with a random name.
    ///
    /// No other client is disturbed, because none knows the name. At a lock service that remembers
    /// cancelled attempts this is a write. The service forgets it within minutes, as any cancelled
    /// attempt. At ZooKeeper it is a request that only the leader can answer. So a standby, a
    /// replica, a service without its majority and a service without space fail here, although they
    /// can be read.
    ///
    /// NOT a promise about the next request, nor about all parts of a service: only the part that
    /// keeps that name is asked. A Redis server succeeds here even if its memory is full.
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
