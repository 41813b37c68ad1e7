use std::{collections::VecDeque, time::Duration};

use foldhash::HashMap;

use crate::{AttemptRef, FencingToken, Holder, Moment, ResourceName};

/// How long the end of a local acquisition is remembered. Late requests for it come from this
/// process.
const ENDED_TTL: Duration = Duration::from_secs(10);

/// How many ends are remembered. Hand-offs inside a process are fast.
const ENDED_MAX: usize = 16_384;

/// Remembers what has ended in this process, up to a time and a number, and then forgets it by
/// itself.
#[derive(Debug, Default)]
pub(super) struct Ended {
    memory: HashMap<Key, (End, Moment)>,
    oldest_first: VecDeque<(Moment, Key)>,
}

/// A holder may have acquired several resources; its acquisition of each one ends separately.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Acquisition(ResourceName, Holder),
    Attempt(AttemptRef),
}

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its holder released it; it had this token.
    Released(FencingToken),
    /// The attempt was cancelled, or the lease was lost.
    Over,
    /// It was cancelled, and had never been seen here: only the service can end it.
    CancelledUnseen,
    /// It left the line, and may come again.
    Left,
}

impl Ended {
    pub(super) fn acquisition(
        &mut self,
        resource: &ResourceName,
        holder: Holder,
        end: End,
        now: Moment,
    ) {
        self.insert(Key::Acquisition(resource.clone(), holder), end, now);
    }

    /// An attempt that is over stays over, whatever its caller does later.
    pub(super) fn attempt(&mut self, attempt: &AttemptRef, end: End, now: Moment) {
        let key = Key::Attempt(attempt.clone());
        if self.get(&key) != Some(End::Over) {
            self.insert(key, end, now);
        }
    }

    /// How the acquisition ended, if it ended here and is still remembered.
    pub(super) fn how(&self, resource: &ResourceName, holder: Holder) -> Option<End> {
        self.get(&Key::Acquisition(resource.clone(), holder))
    }

    /// Whether the attempt has been seen to end here. An earlier cancel does not count: it may not
    /// have reached the service.
    pub(super) fn knows(&self, attempt: &AttemptRef) -> bool {
        let attempt_ended = self.get(&Key::Attempt(attempt.clone()));
        self.how(&attempt.resource, attempt.holder).is_some()
            || matches!(attempt_ended, Some(end) if end != End::CancelledUnseen)
    }

    /// Whether the acquisition, or this attempt of it, has ended for good.
    pub(super) fn forbids(&self, attempt: &AttemptRef) -> bool {
        let attempt_ended = self.get(&Key::Attempt(attempt.clone()));
        self.how(&attempt.resource, attempt.holder).is_some()
            || matches!(attempt_ended, Some(End::Over | End::CancelledUnseen))
    }

    fn get(&self, key: &Key) -> Option<End> {
        let (end, _) = self.memory.get(key)?;
        Some(*end)
    }

    fn insert(&mut self, key: Key, end: End, now: Moment) {
        while let Some((forget, oldest)) = self.oldest_first.front() {
            if *forget > now && self.oldest_first.len() < ENDED_MAX {
                break;
            }
            // It may have been remembered again meanwhile.
            if let Some((_, until)) = self.memory.get(oldest)
                && until == forget
            {
                self.memory.remove(oldest);
            }
            self.oldest_first.pop_front();
        }
        self.oldest_first.push_back((now + ENDED_TTL, key.clone()));
        self.memory.insert(key, (end, now + ENDED_TTL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource() -> ResourceName {
        ResourceName::new("r").unwrap()
    }

    /// A new acquisition ends.
    fn end(ended: &mut Ended, now: Moment) -> Holder {
        let holder = Holder::random();
        ended.acquisition(&resource(), holder, End::Over, now);
        holder
    }

    #[test]
    fn forgets_after_its_time_and_not_before() {
        let mut ended = Ended::default();
        let first = end(&mut ended, Moment::default());
        end(&mut ended, Moment::default());
        assert_eq!(ended.how(&resource(), first), Some(End::Over));
        end(&mut ended, Moment::default() + ENDED_TTL);
        assert_eq!(ended.how(&resource(), first), None);
        assert_eq!((ended.memory.len(), ended.oldest_first.len()), (1, 1));
    }

    #[test]
    fn forgets_the_oldest_when_there_are_many() {
        let mut ended = Ended::default();
        let first = end(&mut ended, Moment::default());
        for _ in 1..ENDED_MAX {
            end(&mut ended, Moment::default());
        }
        assert_eq!(ended.how(&resource(), first), Some(End::Over));
        end(&mut ended, Moment::default());
        assert_eq!(ended.how(&resource(), first), None);
        assert_eq!(ended.memory.len(), ENDED_MAX);
    }
}
