//! A value that many tasks add to under a lock, and its twin that nothing protects.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use lock_core::{
    LeaseGuard, Sequencer,
    backend::{Runtime, TokioRuntime},
};
use lock_testing::FencedCell;

use crate::history::{Event, History};

/// One protected resource: a list of numbers. Each section adds one number to the list that it
/// read.
///
/// The twin is read and written by the same sections at the same moments, but without any rule: it
/// is the control. If a run with a fault loses nothing from the twin, the fault has tested nothing.
#[derive(Debug, Default)]
pub struct Ledger {
    fenced: FencedCell<Vec<u64>>,
    twin: FencedCell<Vec<u64>>,
    accepted: Mutex<Vec<u64>>,
    written_to_twin: Mutex<Vec<u64>>,
}

/// The list that a section has read, and is going to write back with one more number.
#[derive(Debug)]
pub struct Section<'a> {
    ledger: &'a Ledger,
    history: &'a History,
    grant: Sequencer,
    fenced: Option<Vec<u64>>,
    twin: Vec<u64>,
}

impl Ledger {
    /// Claims the ledger for a grant and reads it. If the claim is refused as stale, the fenced
    /// half ends.
    ///
    /// # Cancel safety
    /// The ledger may be claimed. Nothing is written.
    pub async fn enter<'a>(&'a self, guard: &LeaseGuard, history: &'a History) -> Section<'a> {
        let grant = guard.sequencer().clone();
        let asked = TokioRuntime.now();
        let fenced = match self.fenced.claim(&grant).await {
            Ok(()) => {
                history.claimed(Event::answered(&grant, asked));
                self.fenced.read(&grant).await.ok()
            }
            Err(_) => None,
        };
        Section {
            ledger: self,
            history,
            grant,
            fenced,
            twin: self.twin.read_unfenced().await,
        }
    }

    /// How many accepted writes are missing.
    pub fn lost(&self) -> usize {
        missing(&self.accepted, &self.fenced.value())
    }

    /// How many writes are missing from the twin.
    pub fn lost_from_twin(&self) -> usize {
        missing(&self.written_to_twin, &self.twin.value())
    }

    /// How many writes were accepted.
    pub fn accepted(&self) -> usize {
        self.accepted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

impl Section<'_> {
    /// Writes back the list with one more number, which no other section adds. False if the store
    /// refused.
    ///
    /// # Cancel safety
    /// The number may be written, but the task does not know. So it counts as neither accepted nor
    /// lost.
    pub async fn add(mut self, number: u64) -> bool {
        self.twin.push(number);
        self.ledger.twin.write_unfenced(self.twin).await;
        remember(&self.ledger.written_to_twin, number);
        let Some(mut read) = self.fenced else {
            return false;
        };
        read.push(number);
        let asked = TokioRuntime.now();
        if self.ledger.fenced.write(&self.grant, read).await.is_err() {
            return false;
        }
        self.history.written(Event::answered(&self.grant, asked));
        remember(&self.ledger.accepted, number);
        true
    }
}

fn remember(numbers: &Mutex<Vec<u64>>, number: u64) {
    numbers
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(number);
}

fn missing(written: &Mutex<Vec<u64>>, found: &[u64]) -> usize {
    let found: BTreeSet<_> = found.iter().collect();
    let written = written.lock().unwrap_or_else(PoisonError::into_inner);
    written
        .iter()
        .filter(|number| !found.contains(number))
        .count()
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Catches: a control that never loses anything.
    #[tokio::test]
    async fn a_holder_that_was_overtaken_loses_from_the_twin_only() {
        let locks = palisade::connect("memory:").await.unwrap();
        let (ledger, history) = (Ledger::default(), History::default());
        let paused = locks.acquire("r").await.unwrap();
        let section = ledger.enter(&paused, &history).await;
        paused.release().await.unwrap();
        let rival = locks.acquire("r").await.unwrap();
        assert!(ledger.enter(&rival, &history).await.add(1).await);
        assert!(!section.add(2).await);
        assert_eq!((ledger.lost(), ledger.accepted()), (0, 1));
        assert_eq!(ledger.lost_from_twin(), 1);
        history.assert_sound();
    }
}
