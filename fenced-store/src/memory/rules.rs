//! Marks, and the transactions and claims that wait for each other.

use std::{collections::BTreeMap, time::Duration};

use lock_core::{FencingToken, Issuer, ResourceName, Sequencer};

use crate::{
    FenceError, HighWater,
    rule::{self, Claim, Mark, Standing},
};

/// The number of a transaction.
pub(super) type TxId = u64;

#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The only lock service whose tokens are accepted; the first claim sets it.
    issuer: Option<Issuer>,
    pub(super) marks: BTreeMap<ResourceName, Kept>,
    /// The greatest token of a mark that was forgotten.
    pub(super) floor: Option<FencingToken>,
    pub(super) longest_hold: Duration,
    last_tx: TxId,
    /// The open transactions, each with its resources.
    open: BTreeMap<TxId, Vec<ResourceName>>,
    /// How many claims wait for each resource.
    waiting: BTreeMap<ResourceName, usize>,
}

/// A mark, and the time at which it was claimed or refreshed, since 1970.
#[derive(Debug)]
pub(super) struct Kept {
    mark: Mark,
    pub(super) at: Duration,
}

impl Kept {
    pub(super) const fn token(&self) -> FencingToken {
        self.mark.high_water().token
    }
}

impl Rules {
    fn standing(&self, resource: &ResourceName) -> Standing {
        match self.marks.get(resource) {
            Some(kept) => Standing::Marked(kept.mark.clone()),
            None => Standing::Unmarked { floor: self.floor },
        }
    }

    pub(super) const fn floor(&self) -> Option<FencingToken> {
        self.floor
    }

    /// Sets the age of the mark to zero if the mark shows this grant. Returns whether it does.
    pub(super) fn refresh(&mut self, sequencer: &Sequencer, now: Duration) -> bool {
        let is_own = self.check(sequencer).is_ok() && !self.is_busy(sequencer.resource());
        match self.marks.get_mut(sequencer.resource()) {
            Some(kept) if is_own => {
                kept.at = now;
                true
            }
            _ => false,
        }
    }

    /// The work of a claim of this grant.
    pub(super) fn claim(&self, sequencer: &Sequencer) -> Result<Claim, FenceError> {
        if let Some(issuer) = &self.issuer {
            rule::issuer(issuer, sequencer)?;
        }
        rule::claim(&self.standing(sequencer.resource()), sequencer)
    }

    pub(super) fn raise(&mut self, sequencer: &Sequencer, at: Duration) {
        let issuer = sequencer.issuer();
        self.issuer.get_or_insert_with(|| issuer.clone());
        let high_water = HighWater {
            token: sequencer.token(),
            issuer: issuer.clone(),
        };
        let mark = Mark::new(high_water, sequencer.holder().kept_digest());
        self.marks
            .insert(sequencer.resource().clone(), Kept { mark, at });
    }

    /// Whether a write of this grant is accepted.
    pub(super) fn check(&self, sequencer: &Sequencer) -> Result<(), FenceError> {
        if let Some(issuer) = &self.issuer {
            rule::issuer(issuer, sequencer)?;
        }
        rule::check(&self.standing(sequencer.resource()), sequencer)
    }

    pub(super) fn mark(&self, resource: &ResourceName) -> Option<&HighWater> {
        self.marks.get(resource).map(|kept| kept.mark.high_water())
    }

    /// Whether a transaction of this resource is open.
    pub(super) fn is_busy(&self, resource: &ResourceName) -> bool {
        self.open.values().flatten().any(|one| one == resource)
    }

    /// Ends the transactions of this resource. Their writes are not stored.
    pub(super) fn terminate(&mut self, resource: &ResourceName) {
        self.open
            .retain(|_, resources| !resources.contains(resource));
    }

    /// A transaction that has entered no resource yet.
    pub(super) fn begin(&mut self) -> TxId {
        self.last_tx += 1;
        self.open.insert(self.last_tx, Vec::new());
        self.last_tx
    }

    /// Lets a transaction enter a resource. From then on it keeps claims of the resource out.
    pub(super) fn enter(&mut self, tx: TxId, resource: &ResourceName) -> Result<(), FenceError> {
        let resources = self.open.get_mut(&tx).ok_or(FenceError::Aborted)?;
        resources.push(resource.clone());
        Ok(())
    }

    pub(super) fn leave(&mut self, tx: TxId) {
        self.open.remove(&tx);
    }

    pub(super) fn is_open(&self, tx: TxId) -> bool {
        self.open.contains_key(&tx)
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// A transaction does not overtake a claim that waits for its resource.
    pub(super) fn is_claimed_by_a_waiter(&self, resource: &ResourceName) -> bool {
        self.waiting.contains_key(resource)
    }

    pub(super) fn wait(&mut self, resource: &ResourceName) {
        *self.waiting.entry(resource.clone()).or_default() += 1;
    }

    pub(super) fn wait_no_longer(&mut self, resource: &ResourceName) {
        let Some(waiting) = self.waiting.get_mut(resource) else {
            return;
        };
        *waiting -= 1;
        if *waiting == 0 {
            self.waiting.remove(resource);
        }
    }
}
