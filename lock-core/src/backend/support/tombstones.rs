use std::{collections::VecDeque, time::Duration};

use foldhash::HashMap;

use crate::{AttemptRef, FencingToken, Holder, Moment, Released, ResourceName, Sequencer};

/// Remembers for a time how acquisitions and their attempts have ended, so that a late request of
/// an ended acquisition gains nothing.
///
/// An end whose time is over may be remembered until the next end is added.
#[derive(Debug)]
pub struct Tombstones {
    /// The time for which an end is remembered.
    ttl: Duration,
    ends: HashMap<Key, (End, Moment)>,
    oldest_first: VecDeque<(Moment, Key)>,
}

/// How an acquisition, or an attempt of it, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no other end")]
pub enum End {
    /// The holder gave back the lease with this token, or its part of it.
    Released(FencingToken),
    /// The lease ran out or was ended by force, or the attempt was cancelled.
    Over,
    /// The attempt was cancelled, and had never been seen here.
    CancelledUnseen,
}

impl End {
    /// The answer to a release of this lease if its acquisition, or attempt, has ended in this way.
    #[must_use]
    pub fn answer(self, lease: &Sequencer) -> Released {
        if self == Self::Released(lease.token()) {
            Released::Released
        } else {
            Released::NotHolder
        }
    }
}

/// The key of an end. A holder may have acquired several resources, and each of these acquisitions
/// ends separately.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Acquisition(ResourceName, Holder),
    Attempt(AttemptRef),
}

impl Tombstones {
    /// Remembers each end for this time.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            ends: HashMap::default(),
            oldest_first: VecDeque::new(),
        }
    }

    /// Remembers the end of an acquisition.
    pub fn acquisition(&mut self, resource: &ResourceName, holder: Holder, end: End, now: Moment) {
        self.insert(Key::Acquisition(resource.clone(), holder), end, now);
    }

    /// Remembers the end of an attempt. An attempt that was released, or is over, stays in that
    /// state, whatever later calls say.
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
    pub(crate) fn how_attempt(&self, attempt: &AttemptRef) -> Option<End> {
        self.get(&Key::Attempt(attempt.clone()))
    }

    /// Whether the acquisition, or this attempt of it, has ended.
    #[must_use]
    pub fn forbids(&self, attempt: &AttemptRef) -> bool {
        let end = self.how(&attempt.resource, attempt.holder);
        end.is_some() || self.how_attempt(attempt).is_some()
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
            if *forget > now {
                break;
            }
            // The end may have been remembered again since then.
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
    use crate::TokioRuntime;

    const TTL: Duration = Duration::from_secs(10);

    fn resource() -> ResourceName {
        ResourceName::new("r").unwrap()
    }

    /// Ends a new acquisition.
    fn end(tombstones: &mut Tombstones, now: Moment) {
        tombstones.acquisition(&resource(), Holder::random(), End::Over, now);
    }

    /// Catches: a tombstone is forgotten by its first time, although the end was remembered again.
    #[test]
    fn an_attempt_that_ends_once_more_is_remembered_from_then_on() {
        let (mut tombstones, later) = (Tombstones::new(TTL), Moment::default() + TTL / 2);
        let attempt = AttemptRef::new(&TokioRuntime, resource(), Holder::random());
        tombstones.attempt(&attempt, End::CancelledUnseen, Moment::default());
        tombstones.attempt(&attempt, End::Over, later);
        end(&mut tombstones, Moment::default() + TTL);
        assert_eq!(tombstones.how_attempt(&attempt), Some(End::Over));
        end(&mut tombstones, later + TTL);
        assert_eq!(tombstones.how_attempt(&attempt), None);
        assert_eq!(tombstones.ends.len(), 2, "those of the two last");
    }

    /// Catches: a late cancel turns a release into one that may be repeated.
    #[test]
    fn an_attempt_that_is_over_stays_over() {
        let (mut tombstones, now) = (Tombstones::new(TTL), Moment::default());
        let attempt = AttemptRef::new(&TokioRuntime, resource(), Holder::random());
        assert!(!tombstones.forbids(&attempt));
        for (end, remembered, knows) in [
            (End::CancelledUnseen, End::CancelledUnseen, false),
            (End::Over, End::Over, true),
            (End::CancelledUnseen, End::Over, true),
        ] {
            tombstones.attempt(&attempt, end, now);
            assert_eq!(tombstones.how_attempt(&attempt), Some(remembered));
            assert!(tombstones.forbids(&attempt), "{end:?}");
            assert_eq!(tombstones.knows(&attempt), knows, "{end:?}");
        }
    }
}
