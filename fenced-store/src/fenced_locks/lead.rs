//! The traits of a leader whose terms are fences.

use lock_core::{
    Error, LeaseGuard, Released,
    backend::{Candidate, Runtime, TermGuard},
};

use super::{AcquireFenced, FencedGuard, FencedLockError};
use crate::Storage;

impl<DB: Storage> Candidate for AcquireFenced<DB> {
    type Guard = FencedGuard<DB>;
    type Error = FencedLockError;

    async fn campaign(self) -> Result<FencedGuard<DB>, FencedLockError> {
        self.await
    }

    fn runtime(&self) -> &dyn Runtime {
        self.protected.locks.runtime()
    }

    fn may_pass(error: &FencedLockError) -> bool {
        error.may_pass()
    }
}

impl<DB: Storage> TermGuard for FencedGuard<DB> {
    fn lease(&self) -> &LeaseGuard {
        self
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    async fn resign(self) -> Result<Released, Error> {
        self.release().await
    }
}
