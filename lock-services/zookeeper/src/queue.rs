//! The queue for a resource, by the names of the nodes.

use lock_core::backend::{AttemptId, Runtime};

/// The text between the identity of a contender and its number: first Curator's, then kazoo's.
const MARKS: [&str; 2] = ["lock-", "__lock__"];

/// The identity of one creation of a queue entry, before the server has numbered it.
///
/// It has Curator's form, `_c_UUID-lock-`. The UUID consists of the attempt and a number that is
/// drawn for each creation. So a creation whose answer was lost can be found again, and is not
/// mistaken for another creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity(String);

impl Identity {
    pub(super) fn fresh(attempt: AttemptId, runtime: &dyn Runtime) -> Self {
        let drawn = format!("{:016x}", runtime.random() >> 64);
        let (fourth, fifth) = drawn.split_at(4);
        Self(format!("{}{fourth}-{fifth}-lock-", of(attempt)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The node with this identity among those of the queue.
    pub(super) fn find<'a>(&self, nodes: &'a [String]) -> Option<&'a String> {
        nodes.iter().find(|node| node.starts_with(&self.0))
    }
}

/// The beginning of the names of all nodes of an attempt.
fn of(attempt: AttemptId) -> String {
    let attempt = attempt.to_string();
    let (first, rest) = attempt.split_at(8);
    let (second, third) = rest.split_at(4);
    format!("_c_{first}-{second}-{third}-")
}

/// Whether a node belongs to an attempt, in any session.
pub(super) fn is_of(node: &str, attempt: AttemptId) -> bool {
    node.starts_with(&of(attempt))
}

/// The contenders for one resource, of all libraries, in the order in which they came.
#[derive(Debug)]
pub(super) struct Queue(Vec<String>);

impl Queue {
    /// Puts the nodes of a lock directory in order, and leaves out nodes that are no contenders.
    pub(super) fn new(nodes: Vec<String>) -> Self {
        let numbered = nodes
            .into_iter()
            .filter_map(|node| Some((number(&node)?, node)));
        let mut numbered: Vec<_> = numbered.collect();
        // Numbers wrap around at 2^31. The numbers of one queue are close together, so a number is
        // before another if the way up to the other is shorter than the way down.
        let Some((base, _)) = numbered.first() else {
            return Self(Vec::new());
        };
        let base = *base;
        numbered.sort_by_key(|(number, _)| number.wrapping_sub(base));
        Self(numbered.into_iter().map(|(_, node)| node).collect())
    }

    pub(super) fn first(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The nodes before this one: `Some(None)` for the first, `None` if it is not in the queue.
    pub(super) fn ahead_of(&self, node: &str) -> Option<Option<Ahead<'_>>> {
        let entry = self.0.iter().position(|other| other == node)?;
        let node = |back: usize| {
            let index = entry.checked_sub(back)?;
            Some(self.0[index].as_str())
        };
        Some(node(1).map(|next| Ahead {
            count: entry,
            next,
            beyond: node(2),
        }))
    }
}

/// The nodes before a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead<'a> {
    pub(super) count: usize,
    /// The node right before the contender.
    pub(super) next: &'a str,
    /// The node before `next`. `None` if `next` is the first.
    pub(super) beyond: Option<&'a str>,
}

/// The number that the server gave to a contender.
pub(super) fn number(node: &str) -> Option<i32> {
    let mut numbers = MARKS.iter().filter_map(|mark| {
        let at = node.rfind(mark)? + mark.len();
        let number = node[at..].parse().ok()?;
        (numeral(number) == node[at..]).then_some(number)
    });
    numbers.next_back()
}

/// The text that a server appends to the name of a sequential node: ten characters with the sign,
/// or eleven for the lowest numbers.
fn numeral(number: i32) -> String {
    format!("{number:010}")
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn queue(nodes: &[&str]) -> Vec<String> {
        Queue::new(nodes.iter().copied().map(String::from).collect()).0
    }

    /// Catches: after two thousand million locks the last in the queue is served first.
    #[test]
    fn a_line_goes_on_when_the_numbers_wrap_around() {
        let [last, first, second] = ["2147483647", "-2147483648", "-2147483647"]
            .map(|number| format!("_c_u-lock-{number}"));
        assert_eq!(
            queue(&[&second, &last, &first]),
            [last.clone(), first.clone(), second]
        );
        let kazoos = "u__lock__-2147483648";
        assert_eq!(queue(&[kazoos, &last]), [last.as_str(), kazoos]);
    }

    /// The numbers as Java's `%010d` prints them.
    /// Catches: a contender that is overlooked once numbers are negative.
    #[test]
    fn negative_numbers_are_read_at_every_width() {
        for (digits, is) in [
            ("-000000001", -1),
            ("-999999999", -999_999_999),
            ("-1000000000", -1_000_000_000),
            ("-2147483648", i32::MIN),
            ("2147483647", i32::MAX),
            ("0000000000", 0),
        ] {
            for mark in MARKS {
                assert_eq!(number(&format!("_c_u-{mark}{digits}")), Some(is));
            }
        }
        for wrong in [
            "2147483648",
            "-2147483649",
            "-00000001",
            "-0000000001",
            "-0000000000",
            "+000000001",
            "00000000001",
            "000000001",
            "000000000x",
            "",
        ] {
            assert_eq!(number(&format!("_c_u-lock-{wrong}")), None, "{wrong:?}");
        }
    }

    proptest! {
        /// The order is right for each value of the counter, and for each mix of names.
        /// Catches: an order by name, in which all contenders of one kind come before those of the
        /// other.
        #[test]
        fn a_line_is_in_the_order_of_the_counter(
            first in any::<i32>(),
            steps in vec((1..1_000_i32, 0..MARKS.len()), 1..20),
            turn in any::<prop::sample::Index>(),
        ) {
            let mut counter = first;
            let mut nodes = Vec::new();
            for (step, mark) in steps {
                nodes.push(format!("_c_u-{}{}", MARKS[mark], numeral(counter)));
                counter = counter.wrapping_add(step);
            }
            let mut mixed = nodes.clone();
            mixed.rotate_left(turn.index(nodes.len()));
            mixed.push("notes".to_owned());
            prop_assert_eq!(Queue::new(mixed).0, nodes);
        }
    }
}
