use std::{ops::Deref, sync::Arc, time::Duration};

use fenced_store::{FencedLocks, FencedStore};
use lock_core::LockManager;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::{Semaphore, watch};

use super::{
    AdminToken, health::Probe, idempotency::Idempotency, tokens::Tokens, under_way::UnderWay,
};
use crate::{events::Recorder, ledger::Ledger};

/// What the handlers share, behind one pointer.
#[derive(Debug)]
pub(super) struct App<DB: Ledger>(Arc<Shared<DB>>);

/// See [`App`].
#[derive(Debug)]
pub(super) struct Shared<DB: Ledger> {
    pub(super) protected: FencedLocks<DB>,
    pub(super) tokens: Tokens,
    pub(super) idempotency: Idempotency,
    pub(super) recorder: Option<Recorder>,
    pub(super) metrics: Option<PrometheusHandle>,
    pub(super) admin_token: Option<AdminToken>,
    /// Whether every account has its unfenced twin.
    pub(super) unfenced: bool,
    pub(super) is_closing: watch::Receiver<bool>,
    /// How long a request may take to arrive, and again to be served.
    pub(super) time_limit: Duration,
    /// What the gateway finishes before it ends.
    pub(super) under_way: UnderWay,
    /// A permit for each request that may wait for a lease.
    pub(super) waiting: Semaphore,
    /// What the last probe has found.
    pub(super) probe: Probe,
}

impl<DB: Ledger> Shared<DB> {
    pub(super) const fn locks(&self) -> &LockManager {
        self.protected.locks()
    }

    pub(super) const fn store(&self) -> &FencedStore<DB> {
        self.protected.store()
    }

    /// Resolves when the gateway has been asked to stop.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn closing(&self) {
        let mut is_closing = self.is_closing.clone();
        // An error means that the server is gone altogether.
        let _gone = is_closing.wait_for(|closing| *closing).await.is_err();
    }
}

impl<DB: Ledger> App<DB> {
    pub(super) fn new(shared: Shared<DB>) -> Self {
        Self(Arc::new(shared))
    }
}

impl<DB: Ledger> Deref for App<DB> {
    type Target = Shared<DB>;

    fn deref(&self) -> &Shared<DB> {
        &self.0
    }
}

/// Not derived, which would ask for `DB: Clone`.
impl<DB: Ledger> Clone for App<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
