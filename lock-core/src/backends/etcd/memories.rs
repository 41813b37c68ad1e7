use std::time::Duration;

use crate::Moment;

/// The leases that marks are attached to. All acquisitions of this client share them, so that
/// remembering one costs no lease of its own. None of them is ever kept alive: they end, and with
/// them the marks.
#[derive(Debug, Default)]
pub(super) struct Memories {
    /// Number and end.
    leases: Vec<(i64, Moment)>,
}

impl Memories {
    /// How long a lease should be if it is needed for this long: longer, as it serves many
    /// acquisitions.
    pub(super) fn length_for(least: Duration) -> Duration {
        least * 2
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

    /// Of those that last until then, the one that ends first.
    pub(super) fn shortest_until(&self, until: Moment) -> Option<i64> {
        let lasting = self.leases.iter().filter(|(_, end)| *end >= until);
        lasting.min_by_key(|(_, end)| *end).map(|(lease, _)| *lease)
    }

    pub(super) fn insert(&mut self, lease: i64, end: Moment) {
        if self.leases.iter().any(|(known, _)| *known == lease) {
            return;
        }
        self.leases.push((lease, end));
        // Those that end first are of no use to anybody any more. There are a handful at most.
        self.leases
            .sort_unstable_by_key(|(_, end)| std::cmp::Reverse(*end));
        self.leases.truncate(KEPT_MAX);
    }

    pub(super) fn lasts(&self, lease: i64, until: Moment) -> bool {
        self.leases
            .iter()
            .any(|(known, end)| *known == lease && *end >= until)
    }
}

/// About one for each length that is asked for at the same time.
const KEPT_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn the_shortest_that_lasts_is_taken() {
        let mut memories = Memories::default();
        memories.insert(1, at(60));
        memories.insert(2, at(30));
        assert_eq!(memories.shortest_until(at(20)), Some(2));
        assert_eq!(memories.shortest_until(at(40)), Some(1));
        assert_eq!(memories.shortest_until(at(61)), None);
        assert!(memories.lasts(1, at(60)) && !memories.lasts(2, at(31)));
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
    fn those_that_end_first_are_dropped() {
        let mut memories = Memories::default();
        for number in 1..100 {
            memories.insert(number, at(u64::try_from(number).unwrap()));
        }
        assert_eq!(memories.leases.len(), KEPT_MAX);
        assert!(memories.lasts(99, at(99)) && !memories.lasts(1, at(0)));
    }
}
