use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use crate::{AttemptId, FencingToken, Holder, Moment};

/// How long the end of a local acquisition is remembered. Its late requests come from this process.
const ENDED_TTL: Duration = Duration::from_secs(10);

/// How many ends are remembered. Hand-offs inside a process are fast.
const ENDED_MAX: usize = 16_384;

/// Remembers what has ended in this process, for a time and up to a number. Forgets by itself.
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

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its holder released it; it had this token.
    Released(FencingToken),
    /// It was cancelled, or its lease was lost.
    Over,
    /// It left the line, and may come again.
    Left,
}

impl Ended {
    pub(super) fn acquisition(&mut self, holder: Holder, end: End, now: Moment) {
        self.insert(Key::Acquisition(holder), end, now);
    }

    pub(super) fn attempt(&mut self, holder: Holder, attempt: AttemptId, end: End, now: Moment) {
        self.insert(Key::Attempt(holder, attempt), end, now);
    }

    /// How the acquisition ended, if it did so here and is still remembered.
    pub(super) fn how(&self, holder: Holder) -> Option<End> {
        let (end, _) = self.memory.get(&Key::Acquisition(holder))?;
        Some(*end)
    }

    /// Whether the attempt has been seen to end here.
    pub(super) fn knows(&self, holder: Holder, attempt: AttemptId) -> bool {
        self.how(holder).is_some() || self.memory.contains_key(&Key::Attempt(holder, attempt))
    }

    /// Whether the acquisition, or this attempt of it, has ended for good.
    pub(super) fn forbids(&self, holder: Holder, attempt: AttemptId) -> bool {
        let attempt = self.memory.get(&Key::Attempt(holder, attempt));
        self.how(holder).is_some() || matches!(attempt, Some((End::Over, _)))
    }

    fn insert(&mut self, key: Key, end: End, now: Moment) {
        while let Some((forget, oldest)) = self.oldest_first.front() {
            if *forget > now && self.oldest_first.len() < ENDED_MAX {
                break;
            }
            // It may have been remembered once more meanwhile.
            if let Some((_, until)) = self.memory.get(oldest)
                && until == forget
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
        ended.acquisition(first, End::Over, Moment::default());
        ended.acquisition(Holder::random(), End::Over, Moment::default());
        assert_eq!(ended.how(first), Some(End::Over));
        let later = Moment::default() + ENDED_TTL;
        ended.acquisition(Holder::random(), End::Over, later);
        assert_eq!(ended.how(first), None);
        assert_eq!((ended.memory.len(), ended.oldest_first.len()), (1, 1));
    }

    #[test]
    fn forgets_the_oldest_when_there_are_many() {
        let (mut ended, first) = (Ended::default(), Holder::random());
        ended.acquisition(first, End::Over, Moment::default());
        for _ in 1..ENDED_MAX {
            ended.acquisition(Holder::random(), End::Over, Moment::default());
        }
        assert_eq!(ended.how(first), Some(End::Over));
        ended.acquisition(Holder::random(), End::Over, Moment::default());
        assert_eq!(ended.how(first), None);
        assert_eq!(ended.memory.len(), ENDED_MAX);
    }
}
