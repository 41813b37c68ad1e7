use std::{ops::Deref, sync::Arc};

use axum::extract::FromRef;
use fenced_store::FencedStore;
use palisade_gateway::TimeLimit;

use crate::{events::Recorder, ledger::Ledger};

/// The state that the handlers share, behind one pointer.
#[derive(Debug)]
pub(super) struct App<DB: Ledger>(Arc<Shared<DB>>);

/// See [`App`].
#[derive(Debug)]
pub(super) struct Shared<DB: Ledger> {
    pub(super) store: FencedStore<DB>,
    pub(super) recorder: Option<Recorder>,
    /// Whether every account has its unfenced twin, or only the accounts that are on stage in the
    /// recorder.
    pub(super) unfenced: bool,
    pub(super) time_limit: TimeLimit,
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

/// This is not derived, because a derived one would require `DB: Clone`.
impl<DB: Ledger> Clone for App<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<DB: Ledger> FromRef<App<DB>> for TimeLimit {
    fn from_ref(app: &App<DB>) -> Self {
        app.time_limit.clone()
    }
}
