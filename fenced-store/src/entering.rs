#[cfg(feature = "postgres")]
use std::time::Duration;

use lock_core::{ResourceName, Sequencer};

use crate::{FenceError, entry::Entry};

/// The checks that a transaction has to pass when it begins.
#[derive(Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Entering {
    entrants: Vec<Entrant>,
    entry: Entry,
}

/// One resource of the transaction.
#[derive(Debug)]
pub(crate) struct Entrant {
    pub(crate) sequencer: Sequencer,
    #[cfg(feature = "postgres")]
    pub(crate) bound: Option<Duration>,
}

impl Entering {
    /// All transactions enter in the order of the names. Otherwise a transaction in `a` that waits
    /// for `b`, behind a claim, and one in `b` that waits for `a`, behind another claim, would make
    /// four that wait for ever.
    pub(crate) fn of(mut entrants: Vec<Entrant>) -> Result<Self, FenceError> {
        entrants.sort_by(|one, other| one.resource().cmp(other.resource()));
        let mut neighbours = entrants.iter().zip(entrants.iter().skip(1));
        if let Some((twice, _)) = neighbours.find(|(one, next)| one.resource() == next.resource()) {
            let resource = twice.resource().clone();
            return Err(FenceError::RepeatedResource { resource });
        }
        let entry = Entry::random();
        Ok(Self { entrants, entry })
    }

    /// The entrants in the order of their names, each resource once.
    pub(crate) fn entrants(&self) -> &[Entrant] {
        &self.entrants
    }

    /// Tells the commit that this is still the transaction that entered.
    pub(crate) const fn entry(&self) -> Entry {
        self.entry
    }
}

impl Entrant {
    fn resource(&self) -> &ResourceName {
        self.sequencer.resource()
    }

    /// The grant that the mark has to show.
    pub(crate) const fn sequencer(&self) -> &Sequencer {
        &self.sequencer
    }

    /// How long the grant may be held at most; `None` if unknown.
    #[cfg(feature = "postgres")]
    pub(crate) const fn bound(&self) -> Option<Duration> {
        self.bound
    }
}
