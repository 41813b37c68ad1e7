//! The queue entry of an acquisition that waits, and the result of a look at the entries before it.

use std::time::Duration;

use lock_core::backend::Moment;

/// A queue entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) created: i64,
    pub(super) floor: u64,
}

/// The entries before an entry, and the entry itself.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    /// The number of entries before it, up to the number that was asked for, and the last of them.
    pub(super) number: i64,
    pub(super) last: Option<Vec<u8>>,
    /// [`Entry::least`](super::record::Entry).
    pub(super) least: u64,
    /// The moment at which the look began, the revision of the cluster, and its term.
    pub(super) asked: Moment,
    pub(super) revision: i64,
    pub(super) term: u64,
}

/// The time for which a lease lives at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) since: Moment,
    pub(super) ttl: Duration,
    /// The time that the lease has when it is kept alive.
    pub(super) length: Duration,
    /// The term in which a leader said so without asking a majority. `None` for a fact on which a
    /// majority has agreed, such as the grant of a lease.
    pub(super) said_in: Option<u64>,
}

impl Life {
    /// The life of a lease which has its full length, in seconds, at this moment.
    pub(super) fn whole(since: Moment, length: i64, said_in: Option<u64>) -> Self {
        let length = seconds_of(length);
        Self {
            since,
            ttl: length,
            length,
            said_in,
        }
    }

    pub(super) fn end(self) -> Moment {
        self.since + self.ttl
    }

    /// The part of this life that a look at the entry proves. `None` if the leader that reported
    /// the life may have been deposed by the time of the look.
    pub(super) fn proven_by(self, seen: &Ahead) -> Option<Self> {
        let led = self.said_in.is_none_or(|term| term == seen.term);
        led.then(|| Self {
            since: std::cmp::min(self.since, seen.asked),
            said_in: None,
            ..self
        })
    }
}

pub(super) fn seconds_of(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    /// Catches: the answer of a leader that was cut off counts, although its successor has ended
    /// the lease.
    #[test]
    fn the_answer_of_one_node_counts_if_it_led_at_the_time_of_the_look() {
        let seen = Ahead {
            number: 0,
            last: None,
            least: 0,
            asked: at(5),
            revision: 1,
            term: 3,
        };
        let life = |since, said_in| Life {
            since: at(since),
            ttl: Duration::from_secs(9),
            length: Duration::from_secs(9),
            said_in,
        };
        let since = |life: Life| life.proven_by(&seen).map(|life| life.since);
        assert_eq!(since(life(4, Some(3))), Some(at(4)));
        // The lease was kept alive after the look, and the leader's successor may have begun right
        // after the look.
        assert_eq!(since(life(6, Some(3))), Some(at(5)));
        assert_eq!(since(life(4, Some(2))), None);
        assert_eq!(since(life(4, Some(4))), None);
        // A majority has granted the lease.
        assert_eq!(since(life(4, None)), Some(at(4)));
    }
}
