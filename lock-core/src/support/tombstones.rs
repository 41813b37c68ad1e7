use std::{collections::VecDeque, time::Duration};

use foldhash::HashMap;

use crate::{AttemptRef, FencingToken, Holder, Moment, Released, ResourceName, Sequencer};

/// Remembers how acquisitions and their attempts have ended, for a time and up to a number, so that
/// a late request of one gains nothing.
///
/// What is older is forgotten when the next one ends, and may be remembered until then.
#[derive(Debug)]
pub struct Tombstones {
    /// For how long.
    ttl: Duration,
    /// How many.
    at_most: usize,
    ends: HashMap<Key, (End, Moment)>,
    oldest_first: VecDeque<(Moment, Key)>,
}

/// How an acquisition, or an attempt of it, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no other end")]
pub enum End {
    /// Its holder gave back what it had of the lease with this token.
    Released(FencingToken),
    /// Its lease ran out or was ended by force, or the attempt was cancelled.
    Over,
    /// It was cancelled, and had never been seen here.
    CancelledUnseen,
    /// It left the queue, and may come again.
    Left,
}

impl End {
    /// The answer to a release of this lease when its acquisition, or attempt, has ended so.
    #[must_use]
    pub fn answer(self, lease: &Sequencer) -> Released {
        if self == Self::Released(lease.token()) {
            Released::Released
        } else {
            Released::NotHolder
        }
    }
}

/// A holder may have acquired several resources; its acquisition of each one ends separately.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Acquisition(ResourceName, Holder),
    Attempt(AttemptRef),
}

impl Tombstones {
    /// Remembers each for this long, and at most so many.
    #[must_use]
    pub fn new(ttl: Duration, at_most: usize) -> Self {
        Self {
            ttl,
            at_most,
            ends: HashMap::default(),
            oldest_first: VecDeque::new(),
        }
    }

    /// Remembers the end of an acquisition.
    pub fn acquisition(&mut self, resource: &ResourceName, holder: Holder, end: End, now: Moment) {
        self.insert(Key::Acquisition(resource.clone(), holder), end, now);
    }

    /// Remembers the end of an attempt. One that was released, or is over, stays so, whatever is
    /// said of it later.
    pub fn attempt(&mut self, attempt: &AttemptRef, end: End, now: Moment) {
        let end = match self.how_attempt(attempt) {
            Some(last @ (End::Released(_) | End::Over)) => last,
            _ => end,
        };
        self.insert(Key::Attempt(attempt.clone()), end, now);
    }

    /// How the acquisition ended, if it is still remembered.
    #[must_use]
    pub fn how(&self, resource: &ResourceName, holder: Holder) -> Option<End> {
        self.get(&Key::Acquisition(resource.clone(), holder))
    }

    /// How the attempt ended, if it is still remembered.
    #[must_use]
    pub fn how_attempt(&self, attempt: &AttemptRef) -> Option<End> {
        self.get(&Key::Attempt(attempt.clone()))
    }

    /// Whether the acquisition, or this attempt of it, has ended for good.
    #[must_use]
    pub fn forbids(&self, attempt: &AttemptRef) -> bool {
        let end = self.how(&attempt.resource, attempt.holder);
        end.is_some()
            || self
                .how_attempt(attempt)
                .is_some_and(|end| end != End::Left)
    }

    /// Whether the acquisition, or this attempt of it, has been seen to end here.
    #[must_use]
    pub fn knows(&self, attempt: &AttemptRef) -> bool {
        let seen = |end| end != End::CancelledUnseen;
        let end = self.how(&attempt.resource, attempt.holder);
        end.is_some() || self.how_attempt(attempt).is_some_and(seen)
    }

    fn get(&self, key: &Key) -> Option<End> {
        self.ends.get(key).map(|(end, _)| *end)
    }

    fn insert(&mut self, key: Key, end: End, now: Moment) {
        while let Some((forget, oldest)) = self.oldest_first.front() {
            if *forget > now && self.oldest_first.len() < self.at_most {
                break;
            }
            // It may have been remembered once more meanwhile.
            if let Some((_, until)) = self.ends.get(oldest)
                && until == forget
            {
                self.ends.remove(oldest);
            }
            self.oldest_first.pop_front();
        }
        let until = now + self.ttl;
        self.oldest_first.push_back((until, key.clone()));
        self.ends.insert(key, (end, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);
    const AT_MOST: usize = 100;

    fn resource() -> ResourceName {
        ResourceName::new("r").unwrap()
    }

    fn tombstones() -> Tombstones {
        Tombstones::new(TTL, AT_MOST)
    }

    /// A new acquisition ends.
    fn end(tombstones: &mut Tombstones, now: Moment) -> Holder {
        let holder = Holder::random();
        tombstones.acquisition(&resource(), holder, End::Over, now);
        holder
    }

    /// Catches: memory that grows with the number of acquisitions.
    #[test]
    fn forgets_the_oldest_when_there_are_many() {
        let mut tombstones = tombstones();
        let first = end(&mut tombstones, Moment::default());
        for _ in 1..AT_MOST {
            end(&mut tombstones, Moment::default());
        }
        assert_eq!(tombstones.how(&resource(), first), Some(End::Over));
        end(&mut tombstones, Moment::default());
        assert_eq!(tombstones.how(&resource(), first), None);
        assert_eq!(tombstones.ends.len(), AT_MOST);
    }

    /// Catches: a tombstone is forgotten by the time of its first end.
    #[test]
    fn what_ends_once_more_is_remembered_from_then_on() {
        let (mut tombstones, later) = (tombstones(), Moment::default() + TTL / 2);
        let attempt = AttemptRef::new(resource(), Holder::random());
        tombstones.attempt(&attempt, End::Left, Moment::default());
        tombstones.attempt(&attempt, End::Over, later);
        end(&mut tombstones, Moment::default() + TTL);
        assert_eq!(tombstones.how_attempt(&attempt), Some(End::Over));
        end(&mut tombstones, later + TTL);
        assert_eq!(tombstones.how_attempt(&attempt), None);
    }

    /// Catches: a late cancel makes of a release something that may be repeated.
    #[test]
    fn an_attempt_that_is_over_stays_over() {
        let (mut tombstones, now) = (tombstones(), Moment::default());
        let attempt = AttemptRef::new(resource(), Holder::random());
        for (end, remembered, forbids, knows) in [
            (End::Left, End::Left, false, true),
            (End::CancelledUnseen, End::CancelledUnseen, true, false),
            (End::Over, End::Over, true, true),
            (End::Left, End::Over, true, true),
        ] {
            tombstones.attempt(&attempt, end, now);
            assert_eq!(tombstones.how_attempt(&attempt), Some(remembered));
            let seen = (tombstones.forbids(&attempt), tombstones.knows(&attempt));
            assert_eq!(seen, (forbids, knows), "{end:?}");
        }
    }
}
