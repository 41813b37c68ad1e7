use std::{sync::Arc, time::Duration};

use fenced_store::{FencedStore, Protected};
use lock_core::LockManager;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::{Semaphore, watch};

use super::{AdminToken, idempotency::Idempotency, tokens::Tokens, under_way::UnderWay};
use crate::{events::Recorder, ledger::Ledger};

/// What the handlers share. Cloning is cheap.
#[derive(Debug)]
pub(super) struct App<DB: Ledger> {
    pub(super) protected: Protected<DB>,
    pub(super) tokens: Tokens,
    pub(super) idempotency: Idempotency,
    pub(super) recorder: Option<Recorder>,
    pub(super) metrics: Option<PrometheusHandle>,
    pub(super) admin_token: Option<AdminToken>,
    pub(super) is_closing: watch::Receiver<bool>,
    /// How long a request may take to arrive, and again to be served.
    pub(super) time_limit: Duration,
    /// What the gateway finishes before it ends.
    pub(super) under_way: UnderWay,
    /// A permit for each request that may wait for a lease.
    pub(super) waiting: Arc<Semaphore>,
}

impl<DB: Ledger> App<DB> {
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

/// Not derived, which would ask for `DB: Clone`.
impl<DB: Ledger> Clone for App<DB> {
    fn clone(&self) -> Self {
        Self {
            protected: self.protected.clone(),
            tokens: self.tokens.clone(),
            idempotency: self.idempotency.clone(),
            recorder: self.recorder.clone(),
            metrics: self.metrics.clone(),
            admin_token: self.admin_token.clone(),
            is_closing: self.is_closing.clone(),
            time_limit: self.time_limit,
            under_way: self.under_way.clone(),
            waiting: Arc::clone(&self.waiting),
        }
    }
}
