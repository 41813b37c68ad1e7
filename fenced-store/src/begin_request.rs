#[cfg(feature = "postgres")]
use std::time::Duration;

use lock_core::{ResourceName, Sequencer};

use crate::{FenceError, tx_name::TxName};

/// The checks that a transaction has to pass when it begins.
#[derive(Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct BeginRequest {
    fences: Vec<Fence>,
    tx_name: TxName,
}

/// A grant that fences the transaction: the mark of its resource has to show it.
#[derive(Debug)]
pub(crate) struct Fence {
    pub(crate) sequencer: Sequencer,
    #[cfg(feature = "postgres")]
    pub(crate) bound: Option<Duration>,
}

impl BeginRequest {
    /// All transactions check their resources in the order of the names. Otherwise a transaction in `a` that waits
    /// for `b`, behind a claim, and one in `b` that waits for `a`, behind another claim, would make
    /// four that wait for ever.
    pub(crate) fn of(mut fences: Vec<Fence>) -> Result<Self, FenceError> {
        fences.sort_by(|one, other| one.resource().cmp(other.resource()));
        let mut neighbours = fences.iter().zip(fences.iter().skip(1));
        if let Some((twice, _)) = neighbours.find(|(one, next)| one.resource() == next.resource()) {
            let resource = twice.resource().clone();
            return Err(FenceError::RepeatedResource { resource });
        }
        let tx_name = TxName::random();
        Ok(Self { fences, tx_name })
    }

    /// The fences in the order of their resources' names, each resource once.
    pub(crate) fn fences(&self) -> &[Fence] {
        &self.fences
    }

    /// Tells the commit that this is still the transaction that was begun.
    pub(crate) const fn tx_name(&self) -> TxName {
        self.tx_name
    }
}

impl Fence {
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
