use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use super::{
    ENDED_TTL,
    grant::fresh_id,
    keys::{Names, TombstoneId},
    queued::Life,
    revoker::Revoker,
};
use lock_core::backend::{AttemptId, Moment, Runtime, support::lock};

/// The leases of etcd that this client has asked for: those that acquisitions use, those that are
/// free to be used again, and the tombstones of acquisitions that used them.
///
/// One acquisition uses a lease at a time. After it was released, another one may use the lease,
/// for [half a minute](REUSE) in all; then it is revoked, and is never used again.
///
/// A copy of an entry may come in arbitrarily late. While its lease lives, the tombstone refuses
/// it, and afterwards etcd does, because the lease is gone. So a tombstone is deleted only after
/// all leases are revoked that its acquisition may have used.
#[derive(Debug)]
pub(super) struct Leases {
    /// Every change of it is a single step.
    state: Mutex<State>,
    revoker: Revoker,
}

#[derive(Debug, Default)]
struct State {
    /// Those that are free, by the ttl that they are for, the youngest last.
    free: HashMap<Duration, Vec<Lease>>,
    used: HashMap<TombstoneId, Used>,
    /// Tombstones that may be deleted, and when. The first come first.
    ended: VecDeque<(Moment, Vec<Tombstone>)>,
}

/// A tombstone that this client was the last to write, and the revision by which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tombstone {
    pub(super) id: TombstoneId,
    pub(super) changed: i64,
}

#[derive(Debug)]
struct Lease {
    id: i64,
    ttl: Duration,
    /// `None`: we do not know.
    life: Option<Life>,
    /// When this client asked for it.
    born: Moment,
    /// Those of acquisitions that have used it.
    tombstones: Vec<Tombstone>,
}

/// The leases of an acquisition.
#[derive(Debug)]
struct Used {
    entry: Vec<u8>,
    /// The lease of its queue entry, if this client has put it there.
    holding: Option<i64>,
    /// Each with the attempt that has taken it.
    leases: Vec<(AttemptId, Lease)>,
    /// When this client last wrote its tombstone; 0 if it did not.
    changed: i64,
    /// When to look whether it has ended.
    due: Moment,
}

/// A lease for an acquisition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) id: i64,
    pub(super) life: Option<Life>,
    /// It has still to be granted.
    pub(super) is_new: bool,
}

/// How long a lease is used again.
const REUSE: Duration = Duration::from_secs(30);

/// By how much a lease is longer than its holder knows, in whole seconds. It is used again
/// without any request for as long.
pub(super) fn slack(ttl: Duration) -> Duration {
    Duration::from_secs(std::cmp::max(ttl.as_secs() / 8, 1))
}

/// The length of a lease as its holder knows it: all but the slack.
pub(super) fn without_slack(length: Duration) -> Duration {
    let slack = Duration::from_secs(std::cmp::max(length.as_secs() / 9, 1));
    length.saturating_sub(slack)
}

impl Leases {
    pub(super) fn new(revoker: Revoker) -> Self {
        Self {
            state: Mutex::default(),
            revoker,
        }
    }

    /// A lease for an attempt, which may still have to be granted. It is known from here on, so it
    /// is given back whatever becomes of the attempt.
    pub(super) fn take(
        &self,
        names: &Names,
        attempt: AttemptId,
        ttl: Duration,
        runtime: &dyn Runtime,
    ) -> Taken {
        let now = runtime.now();
        let mut state = self.state();
        let free = state.free.get_mut(&ttl).and_then(Vec::pop);
        let is_new = free.is_none();
        let lease = free.unwrap_or_else(|| Lease {
            id: fresh_id(runtime),
            ttl,
            life: None,
            born: now,
            tombstones: Vec::new(),
        });
        let taken = Taken {
            id: lease.id,
            life: lease.life,
            is_new,
        };
        let used = state.used(names, now + ttl + ENDED_TTL);
        used.leases.push((attempt, lease));
        taken
    }

    /// An acquisition has an entry on that lease, and a tombstone, by that revision.
    pub(super) fn entered(&self, names: &Names, id: i64, changed: i64, life: Option<Life>) {
        if let Some(used) = self.state().used.get_mut(&names.id) {
            (used.holding, used.changed) = (Some(id), changed);
            for (_, lease) in used.leases.iter_mut().filter(|(_, lease)| lease.id == id) {
                lease.life = life;
            }
        }
    }

    /// This client has written the tombstone of an acquisition that has not ended.
    pub(super) fn wrote(&self, names: &Names, changed: i64, due: Moment) {
        self.state().used(names, due).changed = changed;
    }

    /// The lease of an acquisition's entry, if this client knows it.
    pub(super) fn holding(&self, names: &Names) -> Option<i64> {
        self.state().used.get(&names.id)?.holding
    }

    /// Whether this client has written a tombstone of it, which is there still.
    pub(super) fn has_tombstone(&self, names: &Names) -> bool {
        self.tombstone(names).changed > 0
    }

    /// The tombstone of it that this client has written; of revision 0 if it did not.
    pub(super) fn tombstone(&self, names: &Names) -> Tombstone {
        let state = self.state();
        Tombstone {
            id: names.id,
            changed: state.used.get(&names.id).map_or(0, |used| used.changed),
        }
    }

    /// Whether an attempt of this client has taken a lease, which it may have used.
    pub(super) fn has_taken(&self, names: &Names, attempt: AttemptId) -> bool {
        let state = self.state();
        let used = state.used.get(&names.id);
        used.is_some_and(|used| used.leases.iter().any(|(by, _)| *by == attempt))
    }

    /// An attempt has not used its lease, and never will.
    pub(super) fn unused(&self, names: &Names, id: i64, life: Option<Life>, now: Moment) {
        let lease = self.state().remove(names, id);
        if let Some(lease) = lease {
            self.free(Lease { life, ..lease }, now);
        }
    }

    /// A lease of an attempt must not be used again.
    pub(super) fn lose(&self, names: &Names, id: i64, now: Moment) {
        let mut state = self.state();
        let used = state.used.get(&names.id);
        let used = used.filter(|used| used.holding == Some(id));
        let tombstone = used.map(|used| Tombstone {
            id: names.id,
            changed: used.changed,
        });
        let lease = state.remove(names, id);
        drop(state);
        if let Some(lease) = lease {
            self.retire(Some(lease), tombstone, now);
        }
    }

    /// The same for all leases that an attempt has taken, but the one that is still needed.
    pub(super) fn lose_all(
        &self,
        names: &Names,
        attempt: AttemptId,
        needed: Option<i64>,
        now: Moment,
    ) {
        let ids: Vec<_> = self
            .state()
            .used
            .get(&names.id)
            .map_or_else(Vec::new, |used| {
                let taken = used.leases.iter().filter(|(by, _)| *by == attempt);
                taken.map(|(_, lease)| lease.id).collect()
            });
        for id in ids.into_iter().filter(|id| Some(*id) != needed) {
            self.lose(names, id, now);
        }
    }

    /// An acquisition was released, and its entry on that lease deleted. Its tombstone, if it has
    /// one, was written by that revision.
    pub(super) fn released(&self, names: &Names, id: i64, changed: Option<i64>, now: Moment) {
        let tombstone = changed.map(|changed| Tombstone {
            id: names.id,
            changed,
        });
        let lease = self.state().remove(names, id);
        match lease {
            Some(mut lease) => {
                lease.tombstones.extend(tombstone);
                self.free(lease, now);
            }
            // Another client has asked for it.
            None => self.revoke(id, tombstone, now),
        }
    }

    /// An entry on that lease was deleted, and it must not be used again.
    pub(super) fn ended(&self, id: i64, tombstone: Tombstone, names: Option<&Names>, now: Moment) {
        let lease = names.and_then(|names| self.state().remove(names, id));
        match lease {
            Some(lease) => self.retire(Some(lease), Some(tombstone), now),
            None => self.revoke(id, Some(tombstone), now),
        }
    }

    /// There is nothing but a tombstone.
    pub(super) fn buried(&self, tombstone: Tombstone, now: Moment) {
        self.retire(None, Some(tombstone), now);
    }

    /// Acquisitions that may have ended, by what their entries are called.
    pub(super) fn due(&self, now: Moment, most: usize) -> Vec<(TombstoneId, Vec<u8>)> {
        let state = self.state();
        let due = state.used.iter().filter(|(_, used)| used.due <= now);
        due.take(most)
            .map(|(id, used)| (*id, used.entry.clone()))
            .collect()
    }

    /// The result of a look at one of them. If its entry is gone, its lease ran out, or another
    /// client has ended it.
    pub(super) fn looked(&self, id: &TombstoneId, is_there: bool, now: Moment) {
        let mut state = self.state();
        let Some(used) = state.used.get_mut(id).filter(|used| used.due <= now) else {
            return;
        };
        if is_there {
            used.due = now + ENDED_TTL;
            return;
        }
        let used = state.used.remove(id);
        drop(state);
        if let Some(used) = used {
            self.buried(
                Tombstone {
                    id: *id,
                    changed: used.changed,
                },
                now,
            );
            for (_, lease) in used.leases {
                self.retire(Some(lease), None, now);
            }
        }
    }

    /// Tombstones that may be deleted.
    pub(super) fn over(&self, now: Moment) -> Vec<Tombstone> {
        let mut state = self.state();
        let mut over = Vec::new();
        while state.ended.front().is_some_and(|(due, _)| *due <= now) {
            over.extend(state.ended.pop_front().into_iter().flat_map(|(_, of)| of));
        }
        over
    }

    /// These could not be deleted: later.
    pub(super) fn not_deleted(&self, tombstones: Vec<Tombstone>, now: Moment) {
        self.state().ended.push_front((now, tombstones));
    }

    /// Those that were used for long enough, or not for a while, are revoked.
    pub(super) fn retire_old(&self, now: Moment) {
        let mut old = Vec::new();
        for free in self.state().free.values_mut() {
            old.extend(free.extract_if(.., |lease| now >= lease.born + REUSE));
        }
        for lease in old {
            self.retire(Some(lease), None, now);
        }
    }

    /// None of the free ones is used again, because one that we thought was there is not.
    pub(super) fn forget_free(&self, now: Moment) {
        let free = mem::take(&mut self.state().free);
        for lease in free.into_values().flatten() {
            self.retire(Some(lease), None, now);
        }
    }

    fn free(&self, lease: Lease, now: Moment) {
        let lives = lease.life.is_some_and(|life| life.end() > now);
        if lives && now < lease.born + REUSE {
            self.state().free.entry(lease.ttl).or_default().push(lease);
        } else {
            self.retire(Some(lease), None, now);
        }
    }

    fn revoke(&self, id: i64, tombstone: Option<Tombstone>, now: Moment) {
        self.revoker.revoke(id);
        self.retire(None, tombstone, now);
    }

    /// A lease is revoked soon, and its tombstones are deleted later.
    fn retire(&self, lease: Option<Lease>, tombstone: Option<Tombstone>, now: Moment) {
        let mut tombstones = Vec::new();
        if let Some(lease) = lease {
            self.revoker.revoke(lease.id);
            tombstones = lease.tombstones;
        }
        tombstones.extend(tombstone.filter(|tombstone| tombstone.changed > 0));
        if !tombstones.is_empty() {
            self.state().ended.push_back((now + ENDED_TTL, tombstones));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn used(&mut self, names: &Names, due: Moment) -> &mut Used {
        let used = self.used.entry(names.id).or_insert_with(|| Used {
            entry: names.entry.clone(),
            holding: None,
            leases: Vec::new(),
            changed: 0,
            due,
        });
        used.due = std::cmp::max(used.due, due);
        used
    }

    /// Takes a lease from an acquisition, and forgets the acquisition with its last one.
    fn remove(&mut self, names: &Names, id: i64) -> Option<Lease> {
        let used = self.used.get_mut(&names.id)?;
        let index = used.leases.iter().position(|(_, lease)| lease.id == id);
        let (_, lease) = used.leases.swap_remove(index?);
        if used.holding == Some(id) {
            (used.holding, used.changed) = (None, 0);
        }
        if used.leases.is_empty() && used.changed == 0 {
            self.used.remove(&names.id);
        }
        Some(lease)
    }
}

/// They are not used again.
impl Drop for Leases {
    fn drop(&mut self) {
        let free = mem::take(&mut self.state().free);
        for lease in free.into_values().flatten() {
            self.revoker.revoke(lease.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: rounding to whole seconds that takes some of the ttl away.
    #[test]
    fn a_holder_gets_no_less_time_than_it_has_asked_for() {
        for ttl in (100..=200_000).step_by(50).map(Duration::from_millis) {
            let length = (ttl + slack(ttl)).as_millis().div_ceil(1000);
            let length = Duration::from_secs(u64::try_from(length).unwrap());
            let more = without_slack(length) - ttl;
            assert!(more < Duration::from_secs(1), "{ttl:?}: {more:?} more");
            assert!(length - without_slack(length) >= slack(ttl), "{ttl:?}");
        }
    }
}
