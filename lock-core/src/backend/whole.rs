use std::sync::atomic::{AtomicBool, Ordering};

use super::{AcquireRequest, LockBackend};
use crate::{
    Attempt, Error,
    acquisition::{Reply, Request, Requests},
};

/// A lock service that waits inside its own `acquire`, as one request.
pub(super) struct Whole<'a, B: ?Sized> {
    backend: &'a B,
    request: &'a AcquireRequest,
    copied: AtomicBool,
}

impl<'a, B: ?Sized> Whole<'a, B> {
    pub(super) const fn new(backend: &'a B, request: &'a AcquireRequest) -> Self {
        Self {
            backend,
            request,
            copied: AtomicBool::new(false),
        }
    }
}

impl<B: LockBackend + ?Sized> Requests for Whole<'_, B> {
    fn is_opaque(&self) -> bool {
        true
    }

    async fn send(&self, request: Request) -> Result<Reply, Error> {
        if !matches!(request, Request::Look { .. }) {
            self.backend.cancel(&self.request.attempt).await?;
            return Ok(Reply::Cancelled);
        }
        Ok(match self.backend.acquire(self.request).await? {
            Attempt::Granted(grant) => {
                self.copied.store(!grant.all_answered, Ordering::Relaxed);
                Reply::Granted(grant)
            }
            Attempt::Held { retry_after } => Reply::Held { left: retry_after },
        })
    }

    fn has_copied(&self) -> bool {
        self.copied.load(Ordering::Relaxed)
    }
}
