use std::collections::{HashMap, VecDeque};

use super::ENDED_TTL;
use crate::{AttemptId, FencingToken, Holder, Moment};

/// Remembers what has ended, so that a late request of it gains nothing. Forgets by itself.
#[derive(Debug, Default)]
pub(super) struct Ended {
    memory: HashMap<Key, (End, Moment)>,
    oldest_first: VecDeque<(Moment, Key)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Acquisition(Holder),
    Attempt(Holder, AttemptId),
}

/// How an acquisition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its holder released the lease with this token.
    Released(FencingToken),
    /// Its lease ran out.
    Expired,
}

impl Ended {
    pub(super) fn acquisition(&mut self, holder: Holder, end: End, now: Moment) {
        self.insert(Key::Acquisition(holder), end, now);
    }

    pub(super) fn attempt(&mut self, holder: Holder, attempt: AttemptId, now: Moment) {
        self.insert(Key::Attempt(holder, attempt), End::Expired, now);
    }

    /// How the acquisition ended, if it is still remembered.
    pub(super) fn how(&self, holder: Holder) -> Option<End> {
        self.memory
            .get(&Key::Acquisition(holder))
            .map(|(end, _)| *end)
    }

    /// Whether the acquisition, or this attempt of it, has ended.
    pub(super) fn contains(&self, holder: Holder, attempt: AttemptId) -> bool {
        self.memory.contains_key(&Key::Acquisition(holder))
            || self.memory.contains_key(&Key::Attempt(holder, attempt))
    }

    fn insert(&mut self, key: Key, end: End, now: Moment) {
        while let Some((forget, oldest)) = self.oldest_first.front() {
            if *forget > now {
                break;
            }
            // It may have been remembered once more meanwhile.
            if self
                .memory
                .get(oldest)
                .is_some_and(|(_, until)| until == forget)
            {
                self.memory.remove(oldest);
            }
            self.oldest_first.pop_front();
        }
        self.memory.insert(key, (end, now + ENDED_TTL));
        self.oldest_first.push_back((now + ENDED_TTL, key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_after_its_time_and_not_before() {
        let (mut ended, first) = (Ended::default(), Holder::random());
        let end = Moment::default() + ENDED_TTL;
        ended.acquisition(first, End::Expired, Moment::default());
        ended.acquisition(Holder::random(), End::Expired, Moment::default());
        assert_eq!(ended.how(first), Some(End::Expired));
        ended.acquisition(Holder::random(), End::Expired, end);
        assert_eq!(ended.how(first), None);
        assert_eq!((ended.memory.len(), ended.oldest_first.len()), (1, 1));
    }
}
