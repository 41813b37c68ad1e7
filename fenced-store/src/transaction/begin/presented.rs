use lock_core::Sequencer;

use crate::{FenceError, fenced_locks::Held, transaction::begin_request::Fence};

/// A grant that is presented to the store: a [`Sequencer`]; a [`FencedGuard`](crate::FencedGuard),
/// which also knows the lease and earlier refusals; or, with feature `http`, a
/// `fenced_http::Fenced`, the grant of a request.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    sequencer: &'a Sequencer,
    held: Option<&'a Held>,
}

impl<'a> Presented<'a> {
    pub(crate) const fn of_held(sequencer: &'a Sequencer, held: &'a Held) -> Self {
        let held = Some(held);
        Self { sequencer, held }
    }

    pub(crate) const fn sequencer(&self) -> &'a Sequencer {
        self.sequencer
    }

    /// Fails if it is already known that the store would refuse the grant.
    pub(super) fn check(&self) -> Result<(), FenceError> {
        self.held.map_or(Ok(()), Held::check)
    }

    /// The part of the grant that the store checks.
    pub(crate) fn fence(&self) -> Fence {
        Fence {
            sequencer: self.sequencer.clone(),
            #[cfg(feature = "postgres")]
            bound: self.held.and_then(Held::bound),
        }
    }

    /// Interprets the store's refusal of this grant.
    pub(super) fn refused(&self, error: FenceError) -> FenceError {
        match self.held {
            Some(held) => held.refused(error),
            None => error,
        }
    }
}

impl<'a> From<&'a Sequencer> for Presented<'a> {
    fn from(sequencer: &'a Sequencer) -> Self {
        Self {
            sequencer,
            held: None,
        }
    }
}
