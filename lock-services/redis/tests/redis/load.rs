//! Tasks that add to ledgers under locks, and whether what they saw and wrote can be.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use e2e::{
    history::{Event, History},
    ledger::{Ledger, Section},
};
use lock_core::{LeaseGuard, backend::Moment};

/// What all tasks share: `N` resources, each with a ledger.
pub(crate) struct Load<const N: usize> {
    pub(crate) ledgers: [Ledger; N],
    pub(crate) history: History,
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
    /// A number to add that nobody else adds, and whose turn it is.
    pub(crate) fn next(&self) -> (u64, usize) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        (number, usize::try_from(number).unwrap() % N)
    }

    /// Notes a grant that was asked for then, and reads the ledger under it.
    pub(crate) async fn enter(
        &self,
        resource: usize,
        guard: &LeaseGuard,
        asked: Moment,
    ) -> Section<'_> {
        self.history
            .granted(Event::answered(guard.sequencer(), asked));
        self.ledgers[resource].enter(guard, &self.history).await
    }

    pub(crate) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Nothing was granted out of order, and no ledger has lost anything.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        self.history.assert_sound();
        for ledger in &self.ledgers {
            assert_eq!(ledger.lost(), 0, "of {}", ledger.accepted());
            assert!(ledger.accepted() > 0);
        }
    }

    /// What the stores without a fence have lost.
    pub(crate) fn lost_from_twins(&self) -> usize {
        self.ledgers.iter().map(Ledger::lost_from_twin).sum()
    }
}
