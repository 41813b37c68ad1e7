//! Tasks that add to ledgers under locks, and the checks of their reads and writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lock_core::{LeaseGuard, backend::Moment};

use crate::{
    history::{Event, History},
    ledger::{Ledger, Section},
};

/// The state that all tasks share: `N` resources, each with a ledger.
#[derive(Debug)]
pub struct Load<const N: usize> {
    /// One ledger for each resource.
    pub ledgers: [Ledger; N],
    /// All grants, claims and writes.
    pub history: History,
    numbers: AtomicU64,
    over: AtomicBool,
}

impl<const N: usize> Default for Load<N> {
    fn default() -> Self {
        Self {
            ledgers: std::array::from_fn(|_| Ledger::default()),
            history: History::default(),
            numbers: AtomicU64::default(),
            over: AtomicBool::default(),
        }
    }
}

impl<const N: usize> Load<N> {
    /// A number to add, which no other task gets, and the resource whose turn it is.
    pub fn next(&self) -> (u64, usize) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let resource = number % N as u64;
        (number, usize::try_from(resource).unwrap_or_default())
    }

    /// Records a grant that was requested at `asked`, and reads the ledger under it.
    ///
    /// # Cancel safety
    /// The ledger may be claimed. Nothing is written.
    pub async fn enter(&self, resource: usize, guard: &LeaseGuard, asked: Moment) -> Section<'_> {
        self.history
            .granted(Event::answered(guard.sequencer(), asked));
        self.ledgers[resource].enter(guard, &self.history).await
    }

    /// Tells the tasks to stop.
    pub fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether the tasks have to stop.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Checks that grants are in order, and that no ledger has lost a number.
    ///
    /// # Panics
    /// If grants are out of order, a number is lost, or a ledger has accepted nothing.
    #[track_caller]
    pub fn assert_sound(&self) {
        self.history.assert_sound();
        for ledger in &self.ledgers {
            assert_eq!(ledger.lost(), 0, "of {}", ledger.accepted());
            assert!(ledger.accepted() > 0);
        }
    }

    /// How many numbers the stores without a fence have lost.
    pub fn lost_from_twins(&self) -> usize {
        self.ledgers.iter().map(Ledger::lost_from_twin).sum()
    }
}
