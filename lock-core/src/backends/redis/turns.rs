//! How much is under way at a server at once.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

/// Turns at a server: only so many are taken at once, and the others wait in line.
///
/// Who has had a turn for longer than an answer may take loses it to the next in line, if there is
/// one: a future that is kept and not polled would keep its turn, and the others would wait for its
/// owner.
#[derive(Debug)]
pub(super) struct Turns {
    free: Arc<Semaphore>,
    /// As long as an answer may take.
    limit: Duration,
    taken: Mutex<Taken>,
}

/// In the order in which they were taken.
#[derive(Debug, Default)]
struct Taken {
    next: u64,
    turns: BTreeMap<u64, (Instant, OwnedSemaphorePermit)>,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    number: u64,
}

impl Turns {
    pub(super) fn new(number: usize, limit: Duration) -> Self {
        Self {
            free: Arc::new(Semaphore::new(number)),
            limit,
            taken: Mutex::default(),
        }
    }

    /// Waits for a turn.
    ///
    /// # Cancel safety
    /// Cancel safe; the place in line is lost.
    pub(super) async fn take(self: &Arc<Self>) -> Turn {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return self.give(permit);
        }
        let mut next = pin!(Arc::clone(&self.free).acquire_owned());
        loop {
            let over = self.oldest_is_over();
            tokio::select! {
                biased;
                // An error would mean that it was closed, which nobody does.
                Ok(permit) = &mut next => return self.give(permit),
                () = sleep_until(over) => self.end_what_is_over(),
            }
        }
    }

    fn give(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Turn {
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        taken.turns.insert(number, (Instant::now(), permit));
        Turn {
            turns: Arc::clone(self),
            number,
        }
    }

    fn oldest_is_over(&self) -> Instant {
        let oldest = self.taken().turns.values().next().map(|(since, _)| *since);
        oldest.unwrap_or_else(Instant::now) + self.limit
    }

    fn end_what_is_over(&self) {
        let now = Instant::now();
        let over = |(since, _): &(Instant, OwnedSemaphorePermit)| *since + self.limit <= now;
        let ended: Vec<_> = {
            let mut taken = self.taken();
            taken.turns.extract_if(.., |_, turn| over(turn)).collect()
        };
        // Outside the lock, because the next in line is woken.
        drop(ended);
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Never held across an await, and nothing under it panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let ended = self.turns.taken().turns.remove(&self.number);
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn who_keeps_a_turn_loses_it_to_the_next_in_line() {
        let turns = Arc::new(Turns::new(2, LIMIT));
        let (_kept, returned) = (turns.take().await, turns.take().await);
        let (mut first, mut second) = (pin!(turns.take()), pin!(turns.take()));
        assert!(first.as_mut().now_or_never().is_none(), "both are taken");
        drop(returned);
        let first = first.now_or_never().expect("one was given back");
        assert!(second.as_mut().now_or_never().is_none());
        let began = Instant::now();
        let _second = second.await;
        assert_eq!(began.elapsed(), LIMIT, "of the one that is kept");
        drop(first);
        assert!(turns.take().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_nobody_waits_for_stays_with_its_owner() {
        let turns = Arc::new(Turns::new(1, LIMIT));
        let kept = turns.take().await;
        tokio::time::advance(2 * LIMIT).await;
        assert_eq!(turns.free.available_permits(), 0);
        drop(kept);
        assert_eq!(turns.free.available_permits(), 1);
    }
}
