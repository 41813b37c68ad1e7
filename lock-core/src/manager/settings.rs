use super::LockManager;
use crate::{
    AcquireRequest, AttemptRef, Error, ErrorKind, Extension, Holder, Runtime, Wait,
    backend::{LeaseSettings, Patience},
};

/// The holder that acquires.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity {
    /// A new holder that no other client knows.
    Fresh,
    /// A given holder, which others may know.
    Known(Holder),
    /// A given holder, which others may know, and which may hold the resource several times.
    Owner(Holder),
}

impl LeaseSettings {
    /// Refuses invalid settings, and settings that the lock service does not support, before a
    /// request is sent.
    pub(super) fn check(&self, locks: &LockManager) -> Result<(), Error> {
        if let Some(metadata) = &self.metadata {
            metadata.as_ref().map_err(|invalid| *invalid)?;
            locks.require(Extension::Metadata, "metadata")?;
        }
        match self.max_waiters {
            None => Ok(()),
            Some(0) => Err(invalid(
                "max_waiters is at least 1: use try_acquire not to wait",
            )),
            Some(_) => locks.require(Extension::QueueLimit, "limit of its queue"),
        }
    }

    /// The request of one attempt.
    pub(super) fn request(&self, attempt: AttemptRef, wait: Wait) -> AcquireRequest {
        let mut request = AcquireRequest::new(attempt, self.ttl);
        request.wait = wait;
        request.metadata = self.metadata.clone().and_then(Result::ok);
        request.max_waiters = self.max_waiters;
        request
    }

    /// The end of a wait that begins now.
    pub(super) fn until(&self, runtime: &dyn Runtime) -> Wait {
        match self.wait {
            Patience::Look => Wait::Never,
            Patience::AtMost(wait) => Wait::Until(runtime.now() + wait),
            Patience::Unbounded => Wait::Forever,
        }
    }

    /// Whether the watchdog renews the lease for at least a ttl. Otherwise the lease must have its
    /// full length at once, because its first renewal may never be sent.
    pub(super) fn is_kept_up(&self) -> bool {
        let at_least_once = |max_hold| max_hold >= self.ttl.get();
        self.renew && self.max_hold.is_none_or(at_least_once)
    }
}

impl LockManager {
    /// Refuses an extension that the lock service does not support.
    pub(super) fn require(&self, extension: Extension, what: &str) -> Result<(), Error> {
        if self.capabilities().has(extension) {
            return Ok(());
        }
        let error = self.failed(Error::not_applied(ErrorKind::Unsupported));
        Err(error.because(format!("this lock service has no {what}")))
    }
}

/// An error that no lock service has made, because nothing was sent.
pub(super) fn invalid(why: &str) -> Error {
    Error::not_applied(ErrorKind::InvalidInput).because(why)
}
