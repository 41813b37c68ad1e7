use std::time::Duration;

use crate::Moment;

/// The leases that marks hang on: shared by all acquisitions of this client, so that to remember
/// one costs no lease of its own. None of them is ever kept alive: they end, and what hangs on them
/// is forgotten.
#[derive(Debug, Default)]
pub(super) struct Memories {
    /// Number and end.
    leases: Vec<(i64, Moment)>,
}

/// The shortest, so that one serves many acquisitions.
const SHORTEST: Duration = Duration::from_secs(60);

impl Memories {
    /// How long a lease should be that is needed for this long: it serves twice that time.
    pub(super) fn length_for(least: Duration) -> Duration {
        std::cmp::max(least * 2, SHORTEST)
    }

    /// The one that ends the soonest among those that last till then.
    pub(super) fn lasting(&mut self, until: Moment) -> Option<i64> {
        let lasting = self.leases.iter().filter(|(_, end)| *end >= until);
        lasting.min_by_key(|(_, end)| *end).map(|(lease, _)| *lease)
    }

    pub(super) fn insert(&mut self, lease: i64, end: Moment) {
        self.leases.push((lease, end));
        // What cannot last for anybody any more is of no use; there are a handful at most.
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

/// One for each length that is asked for at the same time, more or less.
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
        assert_eq!(memories.lasting(at(20)), Some(2));
        assert_eq!(memories.lasting(at(40)), Some(1));
        assert_eq!(memories.lasting(at(61)), None);
        assert!(memories.lasts(1, at(60)) && !memories.lasts(2, at(31)));
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
