use std::collections::VecDeque;

use lock_core::{
    FencingToken, Holder, Released, Sequencer,
    backend::{AttemptId, Moment},
};

use crate::service::observe::Burial;

/// The ended acquisitions and attempts of one resource, the oldest first.
///
/// There are few, so a search is faster than a map.
#[derive(Clone, Debug, Default)]
pub(super) struct Tombstones(VecDeque<Tombstone>);

#[derive(Clone, Copy, Debug)]
struct Tombstone {
    holder: Holder,
    /// `None` if the acquisition has ended.
    attempt: Option<AttemptId>,
    /// The token, if its holder gave back its part of the lease.
    released: Option<FencingToken>,
    until: Moment,
}

impl Tombstones {
    /// Remembers until this moment that an acquisition, or an attempt of it, has ended. An
    /// acquisition that was released, or is over, stays so, whatever later calls say.
    pub(super) fn bury(
        &mut self,
        holder: Holder,
        attempt: Option<AttemptId>,
        released: Option<FencingToken>,
        (now, until): (Moment, Moment),
    ) {
        while self.0.front().is_some_and(|oldest| oldest.until <= now) {
            self.0.pop_front();
        }
        let present = self.find(holder, attempt).map(|(place, _)| place);
        let before = present.and_then(|place| self.0.remove(place));
        self.0.push_back(Tombstone {
            holder,
            attempt,
            released: before.map_or(released, |before| before.released),
            until,
        });
    }

    /// How the acquisition, or this attempt of it, has ended, if it has.
    pub(super) fn end_of(&self, holder: Holder, attempt: AttemptId) -> Option<Burial> {
        let mut of_holder = self.0.iter().filter(|tombstone| tombstone.holder == holder);
        let its_own = |tombstone: &&Tombstone| tombstone.attempt.is_none_or(|it| it == attempt);
        let tombstone = of_holder.find(its_own)?;
        Some(match (tombstone.released, tombstone.attempt) {
            (Some(_), _) => Burial::Released,
            (None, Some(_)) => Burial::Cancelled,
            (None, None) => Burial::Over,
        })
    }

    /// The answer to a release of this lease, or of this attempt's hold on it.
    pub(super) fn answer(&self, lease: &Sequencer, attempt: Option<AttemptId>) -> Released {
        let released = self.find(lease.holder(), attempt);
        let token = released.and_then(|(_, tombstone)| tombstone.released);
        match token == Some(lease.token()) {
            true => Released::Released,
            false => Released::NotHolder,
        }
    }

    fn find(&self, holder: Holder, attempt: Option<AttemptId>) -> Option<(usize, &Tombstone)> {
        let mut all = self.0.iter().enumerate();
        all.find(|(_, tombstone)| tombstone.holder == holder && tombstone.attempt == attempt)
    }
}
