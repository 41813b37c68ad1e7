//! Nodes are compared, sorted and hashed more often than any other part. So everything that matters
//! about a node is first put into one number.

use std::{
    cmp::Ordering,
    hash::{Hash, Hasher},
};

use super::{
    HEALINGS,
    state::{Node, Slot},
};
use crate::set::Set;

impl Node {
    /// Everything but the name. Different nodes have different keys.
    fn key(&self) -> u64 {
        let holder = self.holder.map_or(0, |holder| u64::from(holder) + 1);
        let counter = self.counter.map_or(0, |counter| u64::from(counter) + 1);
        let mut key = Digits(counter);
        key.push(holder);
        key.push(self.site as u64 * 2 + u64::from(self.serves));
        for slot in self.slots {
            let (kind, count) = match slot {
                Slot::Nothing => (0, 0),
                Slot::Asked => (1, 0),
                Slot::Granted(count) => (2, count),
                Slot::GrantedBefore(count) => (3, count),
                Slot::Raising(count) => (4, count),
            };
            key.push(kind);
            key.push(u64::from(count));
        }
        let bits = |healings: Set| {
            healings
                .members()
                .map(|healing| 1_u64 << healing)
                .sum::<u64>()
        };
        for (one, other) in [
            (self.healed_by, self.outdated),
            (self.read_by, self.listed_by),
        ] {
            key.push(bits(one) << HEALINGS | bits(other));
        }
        key.0
    }
}

/// A number made of digits to the base of 32.
struct Digits(u64);

impl Digits {
    fn push(&mut self, digit: u64) {
        assert!(digit < 32, "{digit} is too large for a digit");
        self.0 = self.0 << 5 | digit;
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.key());
    }
}
