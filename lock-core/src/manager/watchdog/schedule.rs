use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::Moment;

/// Entries with the moments at which they are due. An entry is moved or removed by its key, so no
/// part of it stays behind.
#[derive(Debug)]
pub(super) struct Schedule<T> {
    /// Ordered by time; the key distinguishes entries that are due at the same moment.
    order: BTreeMap<(Moment, Key), T>,
    moments: HashMap<Key, Moment>,
}

/// The number of an entry. Numbers are never used twice.
pub(in crate::manager) type Key = u64;

impl<T> Schedule<T> {
    pub(super) fn new() -> Self {
        Self {
            order: BTreeMap::new(),
            moments: HashMap::default(),
        }
    }

    /// Adds an entry. Its key must be new.
    pub(super) fn add(&mut self, key: Key, moment: Moment, entry: T) {
        self.moments.insert(key, moment);
        self.order.insert((moment, key), entry);
    }

    /// Moves an entry to another moment, unless it has been removed.
    pub(super) fn put_off(&mut self, key: Key, moment: Moment) {
        if let Some(entry) = self.remove(key) {
            self.add(key, moment, entry);
        }
    }

    /// Moves an entry to this moment, if that is sooner and it has not been removed.
    pub(super) fn hasten(&mut self, key: Key, moment: Moment) {
        if self
            .moments
            .get(&key)
            .is_some_and(|present| moment < *present)
        {
            self.put_off(key, moment);
        }
    }

    /// Removes an entry, whenever it is due.
    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let moment = self.moments.remove(&key)?;
        self.order.remove(&(moment, key))
    }

    /// The entries that are due, in order. They stay until they are moved or removed.
    pub(super) fn due(&self, now: Moment) -> impl Iterator<Item = (Key, &T)> {
        let due = self.order.range(..=(now, Key::MAX));
        due.map(|((_, key), entry)| (*key, entry))
    }

    /// The moment at which the first entry is due.
    pub(super) fn first(&self) -> Option<Moment> {
        let ((moment, _), _) = self.order.first_key_value()?;
        Some(*moment)
    }

    /// Removes all entries, in order of time.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.moments.clear();
        std::mem::take(&mut self.order).into_values()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    proptest! {
        /// Catches: after some sequence of steps an entry is in one map only, so that its lease is
        /// renewed for ever, or never.
        #[test]
        fn its_two_maps_agree(
            steps in prop::collection::vec((0..3, 0..8_usize, 0..20_u64), 0..60)
        ) {
            let mut schedule = Schedule::new();
            let mut keys = Vec::new();
            for (step, which, seconds) in steps {
                let key = keys.get(which).copied().unwrap_or_default();
                match step {
                    0 => {
                        let new = keys.len() as Key;
                        schedule.add(new, at(seconds), new);
                        keys.push(new);
                    }
                    1 => drop(schedule.remove(key)),
                    _ => schedule.put_off(key, at(seconds)),
                }
                prop_assert_eq!(schedule.order.len(), schedule.moments.len());
                for (moment, key) in schedule.order.keys() {
                    prop_assert_eq!(schedule.moments.get(key), Some(moment));
                }
            }
        }
    }
}
