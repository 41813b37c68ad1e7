use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use crate::{AttemptRef, FencingToken, Holder, Moment, ResourceName};

/// Remembers what has ended, so that a late request of it gains nothing. Forgets by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    /// For how long.
    ttl: Duration,
    memory: HashMap<Key, (End, Moment)>,
    oldest_first: VecDeque<(Moment, Key)>,
}

/// A holder may have acquired several resources: what ends is its hold of one of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Acquisition(ResourceName, Holder),
    Attempt(AttemptRef),
}

/// How an acquisition, or an attempt of it, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its holder gave back what it had of the lease with this token.
    Released(FencingToken),
    /// Its lease ran out or was ended by force, or the attempt was cancelled.
    Lost,
}

impl Ended {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            memory: HashMap::new(),
            oldest_first: VecDeque::new(),
        }
    }

    pub(crate) fn acquisition(
        &mut self,
        resource: &ResourceName,
        holder: Holder,
        end: End,
        now: Moment,
    ) {
        self.insert(Key::Acquisition(resource.clone(), holder), end, now);
    }

    /// An attempt that was released stays released, whatever is said of it later.
    pub(crate) fn attempt(&mut self, attempt: &AttemptRef, end: End, now: Moment) {
        let end = match self.how_attempt(attempt) {
            Some(released @ End::Released(_)) => released,
            Some(End::Lost) | None => end,
        };
        self.insert(Key::Attempt(attempt.clone()), end, now);
    }

    /// How the acquisition ended, if it is still remembered.
    pub(crate) fn how(&self, resource: &ResourceName, holder: Holder) -> Option<End> {
        self.get(&Key::Acquisition(resource.clone(), holder))
    }

    /// How the attempt ended, if it is still remembered.
    pub(crate) fn how_attempt(&self, attempt: &AttemptRef) -> Option<End> {
        self.get(&Key::Attempt(attempt.clone()))
    }

    /// Whether the acquisition, or this attempt of it, has ended.
    pub(crate) fn contains(&self, attempt: &AttemptRef) -> bool {
        let acquisition = self.how(&attempt.resource, attempt.holder);
        acquisition.or_else(|| self.how_attempt(attempt)).is_some()
    }

    fn get(&self, key: &Key) -> Option<End> {
        self.memory.get(key).map(|(end, _)| *end)
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
        self.memory.insert(key.clone(), (end, now + self.ttl));
        self.oldest_first.push_back((now + self.ttl, key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    #[test]
    fn forgets_after_its_time_and_not_before() {
        let (mut ended, first) = (Ended::new(TTL), Holder::random());
        let resource = ResourceName::new("r").unwrap();
        let end = Moment::default() + TTL;
        ended.acquisition(&resource, first, End::Lost, Moment::default());
        ended.acquisition(&resource, Holder::random(), End::Lost, Moment::default());
        assert_eq!(ended.how(&resource, first), Some(End::Lost));
        ended.acquisition(&resource, Holder::random(), End::Lost, end);
        assert_eq!(ended.how(&resource, first), None);
        assert_eq!((ended.memory.len(), ended.oldest_first.len()), (1, 1));
    }
}
