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

/// The leases of etcd that this client has asked for: the leases that acquisitions use, the leases
/// that are free to be used again, and the tombstones of acquisitions that used them.
///
/// One acquisition uses a lease at a time. After a release another acquisition may use the lease,
/// until it is [half a minute](REUSE) old. Then the lease is revoked, and is never used again.
///
/// A copy of the request for an entry may arrive at any later time. While its lease lives, the
/// tombstone makes etcd refuse the copy. Afterwards etcd refuses it because the lease is gone. So a
/// tombstone is deleted only after all leases are revoked that its acquisition may have used.
#[derive(Debug)]
pub(super) struct Leases {
    /// Every change of the state is a single step.
    state: Mutex<State>,
    revoker: Revoker,
}

#[derive(Debug, Default)]
struct State {
    /// The leases that are free, by the ttl that they are for. The youngest is the last.
    free: HashMap<Duration, Vec<Lease>>,
    used: HashMap<TombstoneId, Used>,
    /// Tombstones, and the moments from which they may be deleted. The earliest come first.
    ended: VecDeque<(Moment, Vec<Tombstone>)>,
}

/// A tombstone that this client was the last to write, and the revision of that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tombstone {
    pub(super) id: TombstoneId,
    pub(super) changed: i64,
}

#[derive(Debug)]
struct Lease {
    id: i64,
    ttl: Duration,
    /// `None` if the life of the lease is not known.
    life: Option<Life>,
    /// The moment at which this client asked for the lease.
    born: Moment,
    /// The tombstones of acquisitions that have used the lease.
    tombstones: Vec<Tombstone>,
}

/// The leases of an acquisition.
#[derive(Debug)]
struct Used {
    entry: Vec<u8>,
    /// The lease of the queue entry, if this client made the entry.
    holding: Option<i64>,
    /// The leases, each with the attempt that has taken it.
    leases: Vec<(AttemptId, Lease)>,
    /// The revision by which this client last wrote the tombstone. 0 if this client did not write
    /// it.
    changed: i64,
    /// The moment at which to look whether the acquisition has ended.
    due: Moment,
}

/// A lease for an acquisition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) id: i64,
    pub(super) life: Option<Life>,
    /// Whether etcd has still to grant the lease.
    pub(super) is_new: bool,
}

/// The age up to which a lease is used again.
const REUSE: Duration = Duration::from_secs(30);

/// The time by which a lease is longer than its holder knows, in whole seconds. While this time is
/// left, the lease can be used again without a request.
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

    /// A lease for an attempt. etcd may still have to grant it. The lease is noted from here on, so
    /// it is given back whatever becomes of the attempt.
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

    /// Notes that an acquisition has an entry on this lease, and a tombstone, both written by this
    /// revision.
    pub(super) fn entered(&self, names: &Names, id: i64, changed: i64, life: Option<Life>) {
        if let Some(used) = self.state().used.get_mut(&names.id) {
            (used.holding, used.changed) = (Some(id), changed);
            for (_, lease) in used.leases.iter_mut().filter(|(_, lease)| lease.id == id) {
                lease.life = life;
            }
        }
    }

    /// Notes that this client has written the tombstone of an acquisition that has not ended.
    pub(super) fn wrote(&self, names: &Names, changed: i64, due: Moment) {
        self.state().used(names, due).changed = changed;
    }

    /// The lease of an acquisition's entry, if this client knows it.
    pub(super) fn holding(&self, names: &Names) -> Option<i64> {
        self.state().used.get(&names.id)?.holding
    }

    /// Whether this client has written a tombstone of the acquisition, and it is still there.
    pub(super) fn has_tombstone(&self, names: &Names) -> bool {
        self.tombstone(names).changed > 0
    }

    /// The tombstone of the acquisition that this client has written. Its revision is 0 if this
    /// client wrote none.
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

    /// Takes back the lease of an attempt that has not used it, and never will.
    pub(super) fn unused(&self, names: &Names, id: i64, life: Option<Life>, now: Moment) {
        let lease = self.state().remove(names, id);
        if let Some(lease) = lease {
            self.free(Lease { life, ..lease }, now);
        }
    }

    /// Takes back a lease of an attempt. The lease must not be used again.
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

    /// The same for all leases that an attempt has taken, except the lease that is still needed.
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

    /// Notes that an acquisition was released, and its entry on this lease deleted. Its tombstone,
    /// if it has one, was written by this revision.
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
            // Another client has asked for the lease.
            None => self.revoke(id, tombstone, now),
        }
    }

    /// Notes that an entry on this lease was deleted. The lease must not be used again.
    pub(super) fn ended(&self, id: i64, tombstone: Tombstone, names: Option<&Names>, now: Moment) {
        let lease = names.and_then(|names| self.state().remove(names, id));
        match lease {
            Some(lease) => self.retire(Some(lease), Some(tombstone), now),
            None => self.revoke(id, Some(tombstone), now),
        }
    }

    /// Notes a tombstone of an acquisition that has no lease.
    pub(super) fn buried(&self, tombstone: Tombstone, now: Moment) {
        self.retire(None, Some(tombstone), now);
    }

    /// Acquisitions that may have ended, with the keys of their entries.
    pub(super) fn due(&self, now: Moment, most: usize) -> Vec<(TombstoneId, Vec<u8>)> {
        let state = self.state();
        let due = state.used.iter().filter(|(_, used)| used.due <= now);
        due.take(most)
            .map(|(id, used)| (*id, used.entry.clone()))
            .collect()
    }

    /// Notes the result of a look at such an acquisition. If its entry is gone, its lease ran out,
    /// or another client has ended it.
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

    /// Notes tombstones that could not be deleted. They are deleted later.
    pub(super) fn not_deleted(&self, tombstones: Vec<Tombstone>, now: Moment) {
        self.state().ended.push_front((now, tombstones));
    }

    /// Revokes the free leases that are too old to be used again.
    pub(super) fn retire_old(&self, now: Moment) {
        let mut old = Vec::new();
        for free in self.state().free.values_mut() {
            old.extend(free.extract_if(.., |lease| now >= lease.born + REUSE));
        }
        for lease in old {
            self.retire(Some(lease), None, now);
        }
    }

    /// Uses no free lease again, because one of them does not exist any more.
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

    /// Makes the client revoke a lease soon, and delete its tombstones later.
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

    /// Takes a lease from an acquisition, and forgets the acquisition when no lease is left.
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

/// Revokes the free leases, because they are not used again.
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

    /// Catches: rounding to whole seconds that makes a lease shorter than its ttl.
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
