//! Redis: the key of a lease is there as long as any other key of the resource is, and says whether
//! there are other keys. So the fast paths look at that key alone.

use lock_core::{
    Released,
    backend::{Grant, Moment, Reply},
};

use super::{
    Flaw, Machines, NOW, State, TTL, Waking,
    server::{Copy, Held, Place, Server},
};
use crate::set::Set;

impl Server {
    fn has_others(&self) -> bool {
        let sets = [self.tables.ended, self.tables.over, self.aside];
        !self.queue.is_empty() || !sets.into_iter().all(Set::is_empty)
    }

    /// Notes that there are no other keys, if everything in them was forgotten.
    pub(super) fn forget_others(&mut self) {
        if !self.has_others() {
            self.vacant = false;
            if let Some(held) = &mut self.tables.held {
                held.alone = true;
            }
        }
    }
}

impl Machines {
    /// The scripts that look at the key of the lease alone. `None` if another script has to run.
    pub(super) fn run_fast(
        &self,
        state: &mut State,
        client: usize,
        copy: Copy,
        asked: Option<Moment>,
    ) -> Option<Reply> {
        if self.waking != Waking::Offers {
            return None;
        }
        let acquisition = self.acquisition(client);
        let tables = &state.server.tables;
        match copy {
            Copy::Look { .. } if tables.held.is_none() && !state.server.vacant => {
                let granted = self.grant(state, client, Set::of(client), TTL);
                Some(granted.reply(asked.unwrap_or(NOW)))
            }
            Copy::Release { token, tombstone } if !tombstone => {
                let ours = tables.exactly(acquisition, token)?;
                if ours.offered || !ours.alone {
                    return None;
                }
                state.server.tables.held = None;
                state.by_release.insert(acquisition);
                Some(Reply::Released(Released::Released))
            }
            _ => None,
        }
    }

    /// The end of each other script.
    pub(super) fn keep(&self, state: &mut State) {
        if self.waking != Waking::Offers {
            return;
        }
        let others = state.server.has_others();
        let server = &mut state.server;
        server.vacant = server.tables.held.is_none() && others && !self.is(Flaw::NeverVacant);
        if let Some(held) = &mut server.tables.held {
            held.alone &= !others || self.is(Flaw::AlwaysAlone);
        }
    }

    /// The answer of a release has the whole lease of a waiter.
    pub(super) fn hand_over(&self, state: &mut State, place: Place) -> Grant {
        let held = self.grant(state, place.latest, place.attempts, TTL);
        let handed = true;
        state.server.tables.held = Some(Held { handed, ..held });
        if self.is(Flaw::HandedKeepsPlace) {
            state.server.queue.insert(0, place);
        }
        held.grant(NOW)
    }
}
