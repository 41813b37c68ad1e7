use std::{ops::RangeInclusive, time::Duration};

use lock_core::Moment;

/// The leases that marks are attached to. All acquisitions of this client share them, so that
/// remembering one costs no lease of its own. None of them is ever kept alive: they end, and with
/// them the marks.
#[derive(Debug, Default)]
pub(super) struct Memories {
    /// Number and end.
    leases: Vec<(i64, Moment)>,
}

impl Memories {
    /// How long a lease should be if it is needed for this long: two to four times as long, as it
    /// serves many acquisitions. There are few such lengths, so that acquisitions with different
    /// ttls share leases, too.
    pub(super) fn length_for(least: Duration) -> Duration {
        let mut length = SHORTEST;
        while length < least * 2 {
            length *= 2;
        }
        length
    }

    /// How long a lease has to last for a mark that is needed for this long to be attached to it.
    /// That is a while longer than when any acquisition is [due](Self::due_for).
    pub(super) fn fresh_for(least: Duration) -> Duration {
        least * 7 / 4
    }

    /// How long the lease of a mark that is needed for this long has to last from now on. If it
    /// does not, the mark is moved to another one.
    ///
    /// It differs by up to half of that time from acquisition to acquisition, so that those that
    /// came together are not due together.
    pub(super) fn due_for(least: Duration, acquisition: i64) -> Duration {
        let part = u32::try_from(acquisition & 0xff).unwrap_or(0);
        least + least / 512 * part
    }

    /// Of those that end in that range, the one that ends first. Others that last as well are for
    /// longer acquisitions: a mark on them would stay for as long.
    pub(super) fn ending(&self, ends: &RangeInclusive<Moment>) -> Option<i64> {
        let ending = self.leases.iter().filter(|(_, end)| ends.contains(end));
        ending.min_by_key(|(_, end)| *end).map(|(lease, _)| *lease)
    }

    /// Takes one in, and drops those that have ended. Of each length there are a handful at most.
    pub(super) fn insert(&mut self, lease: i64, end: Moment, now: Moment) {
        self.leases
            .retain(|(known, end)| *known != lease && *end > now);
        self.leases.push((lease, end));
    }

    pub(super) fn lasts(&self, lease: i64, until: Moment) -> bool {
        self.leases
            .iter()
            .any(|(known, end)| *known == lease && *end >= until)
    }
}

/// The shortest lease, and the one for acquisitions that have ended.
const SHORTEST: Duration = Duration::from_secs(4 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn the_shortest_that_lasts_is_taken() {
        let mut memories = Memories::default();
        memories.insert(1, at(60), at(0));
        memories.insert(2, at(30), at(0));
        let ending = |from, to| memories.ending(&(at(from)..=at(to)));
        assert_eq!(ending(20, 240), Some(2));
        assert_eq!(ending(40, 240), Some(1));
        assert_eq!(ending(61, 240), None);
        assert!(memories.lasts(1, at(60)) && !memories.lasts(2, at(31)));
    }

    #[test]
    fn a_lease_for_a_long_acquisition_is_not_taken_for_a_short_one() {
        let mut memories = Memories::default();
        memories.insert(1, at(172_800), at(0));
        assert_eq!(memories.ending(&(at(60)..=at(240))), None);
        memories.insert(2, at(240), at(0));
        assert_eq!(memories.ending(&(at(60)..=at(240))), Some(2));
    }

    #[test]
    fn there_are_few_lengths() {
        let length = |least| Memories::length_for(Duration::from_secs(least)).as_secs();
        assert_eq!([60, 70, 120].map(length), [240; 3]);
        assert_eq!([121, 240].map(length), [480; 2]);
        let longest = lock_core::Ttl::MAX.get() + super::super::ENDED_TTL;
        let lengths: std::collections::BTreeSet<_> = (60..=longest.as_secs()).map(length).collect();
        assert!(lengths.len() <= 12, "{lengths:?}");
        for least in 60..=longest.as_secs() {
            assert!((2 * least..=std::cmp::max(240, 4 * least)).contains(&length(least)));
        }
    }

    #[test]
    fn marks_of_one_lease_are_due_little_by_little() {
        let least = Duration::from_secs(70);
        let due = |acquisition| Memories::due_for(least, acquisition);
        let mut last = Duration::ZERO;
        for acquisition in 0..256 {
            assert!(due(acquisition) > last && due(acquisition) >= least);
            last = due(acquisition);
        }
        assert_eq!(due(0x1234_5600), least);
        // A mark that was moved to another lease is not due at once.
        assert!(last + least / 5 < Memories::fresh_for(least));
        assert!(Memories::fresh_for(least) < Memories::length_for(least));
    }

    #[test]
    fn those_that_have_ended_are_dropped() {
        let mut memories = Memories::default();
        memories.insert(1, at(10), at(0));
        memories.insert(2, at(20), at(9));
        assert!(memories.lasts(1, at(10)));
        memories.insert(3, at(30), at(10));
        assert!(!memories.lasts(1, at(0)) && memories.lasts(2, at(20)));
    }
}
