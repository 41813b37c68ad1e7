#[cfg(feature = "postgres")]
use std::time::Duration;
use std::{iter, mem};

use lock_core::{ResourceName, Sequencer, backend::support::Tasks};

use crate::{FenceError, transaction::tx_name::TxName};

/// The checks that a transaction has to pass when it begins.
#[derive(Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct BeginRequest {
    first: Fence,
    others: Vec<Fence>,
    tx_name: TxName,
    tasks: Tasks,
}

/// A grant that fences the transaction: the mark of its resource has to show it.
#[derive(Debug)]
pub(crate) struct Fence {
    pub(crate) sequencer: Sequencer,
    #[cfg(feature = "postgres")]
    pub(crate) bound: Option<Duration>,
}

impl BeginRequest {
    /// Sorts the grants by resource, because all transactions have to check their resources in the
    /// same order. Otherwise a transaction that has entered `a` could wait for `b`, behind a claim
    /// of `b`, while a transaction that has entered `b` waits for `a`, behind a claim of `a`. These
    /// two transactions and two claims would wait for ever.
    pub(crate) fn of(
        mut first: Fence,
        mut others: Vec<Fence>,
        tasks: Tasks,
    ) -> Result<Self, FenceError> {
        for other in &mut others {
            if other.resource() < first.resource() {
                mem::swap(other, &mut first);
            }
        }
        others.sort_by(|one, other| one.resource().cmp(other.resource()));
        let request = Self {
            first,
            others,
            tx_name: TxName::draw(&**tasks.runtime()),
            tasks,
        };
        for (one, next) in request.fences().zip(&request.others) {
            if one.resource() == next.resource() {
                let resource = next.resource().clone();
                return Err(FenceError::RepeatedResource { resource });
            }
        }
        Ok(request)
    }

    /// The fences in the order of their resources' names, each resource once.
    pub(crate) fn fences(&self) -> impl Iterator<Item = &Fence> {
        iter::once(&self.first).chain(&self.others)
    }

    /// The first of the fences.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) const fn first(&self) -> &Fence {
        &self.first
    }

    /// The fences after the first.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn others(&self) -> &[Fence] {
        &self.others
    }

    /// The name by which the commit finds out whether the connection is still in this transaction.
    pub(crate) const fn tx_name(&self) -> TxName {
        self.tx_name
    }

    /// The tasks that finish the work if a caller goes away.
    pub(crate) const fn tasks(&self) -> &Tasks {
        &self.tasks
    }
}

impl Fence {
    pub(crate) fn resource(&self) -> &ResourceName {
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
