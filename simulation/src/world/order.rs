//! Which of the ready tasks is polled next.

use std::{cmp::Reverse, collections::VecDeque};

use super::chance::{OWN_STREAMS, draw, reduced};

/// How the next of the ready tasks is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a schedule names its order")]
pub enum Order {
    /// Each ready task is as likely as any other.
    Uniform,
    /// Each task has a random priority, and the ready task with the highest comes next. At
    /// `depth - 1` [deliveries](super::Process::delivered) the task that runs gets a lower priority
    /// than all others (Burckhardt and others, "A Randomized Scheduler with Probabilistic
    /// Guarantees of Finding Bugs", 2010).
    Pct {
        /// How many turns in a certain order a fault needs to become visible.
        depth: u32,
    },
    /// The task that was woken first, as Tokio does it.
    Fifo,
}

/// The deliveries of a schedule, unless its caller [says](super::World::expect_deliveries) how many
/// there are.
const DELIVERIES: u64 = 64;

const CHOICES: u64 = OWN_STREAMS;
const PRIORITIES: u64 = OWN_STREAMS + 1;
const CHANGES: u64 = OWN_STREAMS + 2;

/// Priorities that were drawn are above those of tasks that were lowered.
const DRAWN: u64 = 1 << 63;

/// The tasks that can be polled, in the order in which they were woken.
#[derive(Debug)]
pub(super) struct Ready {
    seed: u64,
    order: Order,
    tasks: VecDeque<usize>,
    /// How many choices between several tasks there were.
    choices: u64,
    /// The tasks that were lowered, with their priorities. There are few.
    lowered: Vec<(usize, u64)>,
    /// The numbers of the deliveries that lower a task.
    changes: Vec<u64>,
    deliveries: u64,
}

impl Ready {
    pub(super) fn new(seed: u64, order: Order) -> Self {
        let mut ready = Self {
            seed,
            order,
            tasks: VecDeque::new(),
            choices: 0,
            lowered: Vec::new(),
            changes: Vec::new(),
            deliveries: 0,
        };
        ready.expect_deliveries(DELIVERIES);
        ready
    }

    /// Spreads the changes over so many deliveries.
    pub(super) fn expect_deliveries(&mut self, deliveries: u64) {
        let Order::Pct { depth } = self.order else {
            return;
        };
        let change = |number| 1 + reduced(draw(self.seed, CHANGES, number), deliveries);
        self.changes = (1..u64::from(depth)).map(change).collect();
    }

    /// Counts a delivery by this task, and lowers the task if it is one of the changes.
    pub(super) fn delivered(&mut self, by: Option<usize>) {
        self.deliveries += 1;
        let Some(task) = by else { return };
        if self.changes.contains(&self.deliveries) {
            self.lowered.retain(|(lowered, _)| *lowered != task);
            self.lowered
                .push((task, u64::MAX - self.deliveries - DRAWN));
        }
    }

    pub(super) fn add(&mut self, task: usize) {
        self.tasks.push_back(task);
    }

    /// Adds a task again that was chosen to be next.
    pub(super) fn put_back(&mut self, task: usize) {
        self.tasks.push_front(task);
    }

    pub(super) fn has_any(&self) -> bool {
        !self.tasks.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<usize> {
        let place = match (self.tasks.len(), self.order) {
            (0, _) => return None,
            (1, _) | (_, Order::Fifo) => 0,
            (tasks, Order::Uniform) => {
                let drawn = draw(self.seed, CHOICES, self.choices);
                self.choices += 1;
                usize::try_from(reduced(drawn, tasks as u64)).unwrap_or(0)
            }
            (_, Order::Pct { .. }) => {
                let tasks = (0..).zip(&self.tasks);
                let ranked = tasks.map(|(place, task)| (self.priority(*task), Reverse(place)));
                ranked.max().map_or(0, |(_, Reverse(place))| place)
            }
        };
        self.tasks.remove(place)
    }

    fn priority(&self, task: usize) -> u64 {
        let lowered = self.lowered.iter().find(|(lowered, _)| *lowered == task);
        let drawn = || draw(self.seed, PRIORITIES, task as u64) | DRAWN;
        lowered.map_or_else(drawn, |(_, priority)| *priority)
    }

    /// Takes out the tasks for which this is true, in order.
    pub(super) fn take(&mut self, is_taken: impl Fn(usize) -> bool) -> VecDeque<usize> {
        let tasks = self.tasks.drain(..);
        let (taken, left) = tasks.partition::<VecDeque<_>, _>(|task| is_taken(*task));
        self.tasks = left;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(ready: &mut Ready) -> Vec<usize> {
        (0..6).for_each(|task| ready.add(task));
        std::iter::from_fn(|| ready.next()).collect()
    }

    /// Catches: a seed that chooses nothing.
    #[test]
    fn only_the_first_come_first_served_order_is_the_same_for_all_seeds() {
        let differ = |how| {
            let of = |seed| order(&mut Ready::new(seed, how));
            assert_eq!(of(5), of(5));
            (0..8).any(|seed| of(seed) != of(9))
        };
        assert!(differ(Order::Uniform));
        assert!(differ(Order::Pct { depth: 1 }));
        assert!(!differ(Order::Fifo));
        assert_eq!(order(&mut Ready::new(1, Order::Fifo)), [0, 1, 2, 3, 4, 5]);
    }

    /// Catches: priorities that are drawn anew for each choice, which is `Uniform` again.
    #[test]
    fn a_priority_lasts_until_a_delivery_changes_it() {
        let mut ready = Ready::new(3, Order::Pct { depth: 3 });
        ready.expect_deliveries(1);
        let before = order(&mut ready);
        assert_eq!(order(&mut ready), before);
        ready.delivered(Some(before[0]));
        let after = order(&mut ready);
        assert_eq!(after[..5], before[1..]);
        assert_eq!(after[5], before[0]);
        // Later deliveries are no changes.
        ready.delivered(Some(after[0]));
        assert_eq!(order(&mut ready), after);
    }
}
