use std::{ops::Deref, sync::Arc};

use axum::extract::FromRef;
use fenced_store::{FencedLocks, FencedStore};
use lock_core::LockManager;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::{Semaphore, watch};

use crate::{
    AdminToken, health::Probe, idempotency::Idempotency, keys::KeyTable, time_limit::TimeLimit,
    tokens::Tokens,
};

/// The state that the handlers share, behind one pointer.
#[derive(Debug)]
pub(crate) struct App<DB: KeyTable>(Arc<Shared<DB>>);

/// See [`App`].
#[derive(Debug)]
pub(crate) struct Shared<DB: KeyTable> {
    pub(crate) protected: FencedLocks<DB>,
    pub(crate) tokens: Tokens,
    pub(crate) idempotency: Idempotency,
    pub(crate) metrics: Option<PrometheusHandle>,
    pub(crate) admin_token: Option<AdminToken>,
    pub(crate) is_closing: watch::Receiver<bool>,
    pub(crate) time_limit: TimeLimit,
    /// A permit for each request that may wait for a lease.
    pub(crate) waiting: Semaphore,
    /// The result of the last probe.
    pub(crate) probe: Probe,
}

impl<DB: KeyTable> Shared<DB> {
    pub(crate) const fn locks(&self) -> &LockManager {
        self.protected.locks()
    }

    pub(crate) const fn store(&self) -> &FencedStore<DB> {
        self.protected.store()
    }

    /// Resolves when the gateway has been asked to stop.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn closing(&self) {
        let mut is_closing = self.is_closing.clone();
        // An error means that the whole server is gone.
        let _gone = is_closing.wait_for(|closing| *closing).await.is_err();
    }
}

impl<DB: KeyTable> App<DB> {
    pub(crate) fn new(shared: Shared<DB>) -> Self {
        Self(Arc::new(shared))
    }
}

impl<DB: KeyTable> Deref for App<DB> {
    type Target = Shared<DB>;

    fn deref(&self) -> &Shared<DB> {
        &self.0
    }
}

/// This is not derived, because a derived one would require `DB: Clone`.
impl<DB: KeyTable> Clone for App<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<DB: KeyTable> FromRef<App<DB>> for TimeLimit {
    fn from_ref(app: &App<DB>) -> Self {
        app.time_limit.clone()
    }
}
