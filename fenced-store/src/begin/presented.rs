use lock_core::Sequencer;

use crate::{Dialect, FenceError, ProtectedGuard, protected::Held};

/// A grant that is presented to the store: a [`Sequencer`], or a [`ProtectedGuard`], which knows
/// more about it.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    sequencer: &'a Sequencer,
    held: Option<&'a Held>,
}

impl<'a> Presented<'a> {
    pub(super) const fn sequencer(&self) -> &'a Sequencer {
        self.sequencer
    }

    /// Whether there is any point in asking the store.
    pub(super) fn check(&self) -> Result<(), FenceError> {
        self.held.map_or(Ok(()), Held::check)
    }

    /// What the store's refusal of this grant means.
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

impl<'a, DB: Dialect> From<&'a ProtectedGuard<DB>> for Presented<'a> {
    fn from(guard: &'a ProtectedGuard<DB>) -> Self {
        Self {
            sequencer: guard.sequencer(),
            held: Some(guard.held()),
        }
    }
}
