//! A task that forgets the marks of idle resources while the gateway serves.

use std::{convert::Infallible, fmt, future::pending, sync::Arc, time::Duration};

use fenced_store::{FencedLocks, admin::AdminError};
use lock_core::backend::BoxFuture;

use crate::keys::KeyTable;

/// The number of looks within the age at which marks are forgotten.
const LOOKS: u32 = 24;

/// The shortest pause between two looks.
const PAUSE_MIN: Duration = Duration::from_secs(60);

/// A function that begins the task.
#[derive(Clone)]
pub(crate) struct Forgetting(Arc<dyn Fn() -> BoxFuture<'static, Infallible> + Send + Sync>);

impl Forgetting {
    pub(crate) fn new<DB: KeyTable>(protected: FencedLocks<DB>, after: Option<Duration>) -> Self {
        Self(Arc::new(move || {
            let protected = protected.clone();
            match after {
                Some(after) => Box::pin(forget(protected, after)),
                None => Box::pin(pending()),
            }
        }))
    }

    /// # Cancel safety
    /// Safe. It never completes.
    pub(crate) fn run(&self) -> BoxFuture<'static, Infallible> {
        (self.0)()
    }
}

/// Forgets idle marks again and again. All gateways that share a store may do this, because each
/// passes over rows that another one has locked.
async fn forget<DB: KeyTable>(protected: FencedLocks<DB>, after: Duration) -> Infallible {
    let pause = std::cmp::max(after / LOOKS, PAUSE_MIN);
    loop {
        match protected.forget_marks(after).await {
            Ok(forgotten) => tracing::debug!(?forgotten, "idle marks are forgotten"),
            Err(error @ AdminError::NotForgettable { .. }) => {
                tracing::info!(%error, "idle marks are not forgotten");
                return pending().await;
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "idle marks are not forgotten: grant this role the functions, or use \
                 `palisade forget-marks`, and serve with --forget-after never"
            ),
        }
        protected.locks().runtime().sleep(pause).await;
    }
}

impl fmt::Debug for Forgetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forgetting").finish_non_exhaustive()
    }
}
