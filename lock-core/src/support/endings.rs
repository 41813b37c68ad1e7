use std::{collections::VecDeque, time::Duration};

use foldhash::HashMap;

use crate::{AttemptRef, Holder, Moment, ResourceName};

/// Remembers how acquisitions and their attempts have ended, for a time and up to a number.
///
/// What is older is forgotten when the next one ends, and may be remembered until then.
#[derive(Debug)]
pub struct Endings<E> {
    /// For how long.
    ttl: Duration,
    /// How many.
    at_most: usize,
    memory: HashMap<Key, (E, Moment)>,
    oldest_first: VecDeque<(Moment, Key)>,
}

/// A holder may have acquired several resources; its acquisition of each one ends separately.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Acquisition(ResourceName, Holder),
    Attempt(AttemptRef),
}

impl<E: Copy> Endings<E> {
    /// Remembers each for this long, and at most so many.
    #[must_use]
    pub fn new(ttl: Duration, at_most: usize) -> Self {
        Self {
            ttl,
            at_most,
            memory: HashMap::default(),
            oldest_first: VecDeque::new(),
        }
    }

    /// Remembers the end of an acquisition.
    pub fn acquisition(&mut self, resource: &ResourceName, holder: Holder, end: E, now: Moment) {
        self.insert(Key::Acquisition(resource.clone(), holder), end, now);
    }

    /// Remembers the end of an attempt.
    pub fn attempt(&mut self, attempt: &AttemptRef, end: E, now: Moment) {
        self.insert(Key::Attempt(attempt.clone()), end, now);
    }

    /// How the acquisition ended, if it is still remembered.
    #[must_use]
    pub fn how(&self, resource: &ResourceName, holder: Holder) -> Option<E> {
        self.get(&Key::Acquisition(resource.clone(), holder))
    }

    /// How the attempt ended, if it is still remembered.
    #[must_use]
    pub fn how_attempt(&self, attempt: &AttemptRef) -> Option<E> {
        self.get(&Key::Attempt(attempt.clone()))
    }

    fn get(&self, key: &Key) -> Option<E> {
        self.memory.get(key).map(|(end, _)| *end)
    }

    fn insert(&mut self, key: Key, end: E, now: Moment) {
        while let Some((forget, oldest)) = self.oldest_first.front() {
            if *forget > now && self.oldest_first.len() < self.at_most {
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
        let until = now + self.ttl;
        self.oldest_first.push_back((until, key.clone()));
        self.memory.insert(key, (end, until));
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

    fn endings() -> Endings<char> {
        Endings::new(TTL, AT_MOST)
    }

    /// A new acquisition ends.
    fn end(endings: &mut Endings<char>, now: Moment) -> Holder {
        let holder = Holder::random();
        endings.acquisition(&resource(), holder, 'e', now);
        holder
    }

    #[test]
    fn forgets_after_its_time_and_not_before() {
        let mut endings = endings();
        let first = end(&mut endings, Moment::default());
        end(&mut endings, Moment::default());
        assert_eq!(endings.how(&resource(), first), Some('e'));
        end(&mut endings, Moment::default() + TTL);
        assert_eq!(endings.how(&resource(), first), None);
        assert_eq!((endings.memory.len(), endings.oldest_first.len()), (1, 1));
    }

    #[test]
    fn forgets_the_oldest_when_there_are_many() {
        let mut endings = endings();
        let first = end(&mut endings, Moment::default());
        for _ in 1..AT_MOST {
            end(&mut endings, Moment::default());
        }
        assert_eq!(endings.how(&resource(), first), Some('e'));
        end(&mut endings, Moment::default());
        assert_eq!(endings.how(&resource(), first), None);
        assert_eq!(endings.memory.len(), AT_MOST);
    }

    #[test]
    fn what_ends_once_more_is_remembered_from_then_on() {
        let (mut endings, later) = (endings(), Moment::default() + TTL / 2);
        let attempt = AttemptRef::new(resource(), Holder::random());
        endings.attempt(&attempt, 'a', Moment::default());
        endings.attempt(&attempt, 'b', later);
        end(&mut endings, Moment::default() + TTL);
        assert_eq!(endings.how_attempt(&attempt), Some('b'));
        end(&mut endings, later + TTL);
        assert_eq!(endings.how_attempt(&attempt), None);
    }
}
