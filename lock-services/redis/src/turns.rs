//! How much is under way at a server at once.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use lock_core::support::lock;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};

/// Turns at a server: only so many are taken at once, and the others wait in line.
///
/// Who has had a turn for longer than an answer may take loses it to the next in line, if there is
/// one: a future that is kept and not polled would keep its turn, and the others would wait for its
/// owner. That is why a turn counts from when it is given, and not, as with a semaphore, from when
/// its owner is polled.
#[derive(Debug)]
pub(super) struct Turns {
    /// As long as an answer may take.
    limit: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The number of the next turn.
    next: u64,
    /// Since when, in the order in which they were given.
    taken: BTreeMap<u64, Instant>,
    line: VecDeque<oneshot::Sender<Turn>>,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    number: u64,
}

impl Turns {
    pub(super) const fn new(number: usize, limit: Duration) -> Self {
        Self {
            limit,
            state: Mutex::new(State {
                free: number,
                next: 0,
                taken: BTreeMap::new(),
                line: VecDeque::new(),
            }),
        }
    }

    /// Waits for a turn.
    ///
    /// # Cancel safety
    /// Cancel safe; the place in line is lost.
    pub(super) async fn take(self: &Arc<Self>) -> Turn {
        let mut given = match self.enter() {
            Ok(turn) => return turn,
            Err(given) => given,
        };
        loop {
            let over = self.oldest_is_over();
            tokio::select! {
                biased;
                // An error would mean that the sender is gone, which stays until it has sent.
                Ok(turn) = &mut given => return turn,
                () = sleep_until(over) => self.end_what_is_over(),
            }
        }
    }

    /// A turn, or else a place in line.
    fn enter(self: &Arc<Self>) -> Result<Turn, oneshot::Receiver<Turn>> {
        let mut state = self.state();
        // In the moment in which one is given back, the first in line may be overtaken.
        if state.free > 0 {
            return Ok(self.give(&mut state));
        }
        let (sender, given) = oneshot::channel();
        state.line.push_back(sender);
        Err(given)
    }

    fn give(self: &Arc<Self>, state: &mut State) -> Turn {
        state.free -= 1;
        let number = state.next;
        state.next += 1;
        state.taken.insert(number, Instant::now());
        Turn {
            turns: Arc::clone(self),
            number,
        }
    }

    /// Gives what is free to the first in line.
    fn pass_on(self: &Arc<Self>) {
        while let Some((next, turn)) = self.next_in_line() {
            // Outside the lock, because it wakes somebody. If nobody is there any more, dropping
            // the turn gives it back.
            drop(next.send(turn));
        }
    }

    fn next_in_line(self: &Arc<Self>) -> Option<(oneshot::Sender<Turn>, Turn)> {
        let mut state = self.state();
        if state.free == 0 {
            return None;
        }
        // Most of those that have gone are left out here: each that is not costs a turn more.
        while state.line.front().is_some_and(oneshot::Sender::is_closed) {
            state.line.pop_front();
        }
        let next = state.line.pop_front()?;
        let turn = self.give(&mut state);
        Some((next, turn))
    }

    fn oldest_is_over(&self) -> Instant {
        let oldest = self.state().taken.values().next().copied();
        oldest.unwrap_or_else(Instant::now) + self.limit
    }

    fn end_what_is_over(self: &Arc<Self>) {
        let now = Instant::now();
        {
            let mut state = self.state();
            let over = state
                .taken
                .extract_if(.., |_, since| *since + self.limit <= now);
            let ended = over.count();
            state.free += ended;
        }
        self.pass_on();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut state = self.turns.state();
            // Whoever has lost it has nothing to give back.
            let had_it = state.taken.remove(&self.number).is_some();
            state.free += usize::from(had_it);
        }
        self.turns.pass_on();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

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
        assert_eq!(turns.state().free, 0);
        drop(kept);
        assert_eq!(turns.state().free, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_given_a_turn_and_is_not_polled_loses_it_too() {
        let turns = Arc::new(Turns::new(1, LIMIT));
        let _kept = turns.take().await;
        let mut unpolled = pin!(turns.take());
        assert!(unpolled.as_mut().now_or_never().is_none());
        let began = Instant::now();
        let _last = turns.take().await;
        assert_eq!(began.elapsed(), 2 * LIMIT, "of both that are kept");
        assert!(unpolled.now_or_never().is_some(), "it was given one");
        assert_eq!(turns.state().free, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_left_the_line_is_passed_over() {
        let turns = Arc::new(Turns::new(1, LIMIT));
        let first = turns.take().await;
        {
            let mut gone = pin!(turns.take());
            assert!(gone.as_mut().now_or_never().is_none());
        }
        let mut next = pin!(turns.take());
        assert!(next.as_mut().now_or_never().is_none());
        drop(first);
        drop(next.now_or_never().expect("its turn"));
        let State { free, next, .. } = *turns.state();
        assert_eq!((free, next), (1, 2), "who has gone costs no turn");
    }
}
