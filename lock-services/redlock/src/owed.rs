use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use super::{
    call::Call,
    node::{Node, SILENT},
};
use lock_core::backend::{
    Moment,
    support::{Tasks, lock},
};

/// The greatest number of ends that are kept for one node. If there are more, the ends that matter
/// for the shortest time are forgotten.
const MOST: usize = 1000;

/// The pause before a node that was not reached is asked again.
const PAUSE: Duration = Duration::from_millis(250);

/// The ends of attempts that one node has not answered. The node may keep a lease of such an
/// attempt: if it ran a request, and its server was started again, with its data, before it ran the
/// end.
///
/// Each end may be run twice, and also when the attempt does not matter any more.
#[derive(Default)]
pub(super) struct Owed {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The ends, each with the moment at which no lease of its attempt is left. The earliest
    /// moments come first.
    ends: VecDeque<(Moment, Arc<Call>)>,
    /// Whether a task sends the ends.
    is_seen_to: bool,
}

/// Stands for the only task that sends ends. If its runtime ends, the next end begins another task.
struct SeesTo {
    node: Arc<Node>,
    is_done: bool,
}

impl Node {
    /// Sends the end of an attempt again and again until the node has answered, or until the node
    /// can have no lease of the attempt any more. No caller waits for that.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub(super) fn owe(self: &Arc<Self>, end: &Arc<Call>) {
        // A node to which this client never had a connection has run no request of this client.
        let Some(longest) = self.longest() else {
            return;
        };
        // The time is doubled, because the lease is counted by the clock of the node.
        let until = self.runtime.now() + longest * 2;
        if self.owed.add(until, Arc::clone(end)) {
            let task = SeesTo {
                node: Arc::clone(self),
                is_done: false,
            };
            Tasks::here(Arc::clone(&self.runtime)).spawn(task.run());
        }
    }

    async fn send_what_is_owed(&self) {
        while let Some(end) = self.owed.first(self.runtime.now()) {
            // After a time without an answer the end is sent once more, because the connection may
            // be broken.
            match self.runtime.timeout(SILENT, self.ask(&end)).await {
                Some(Ok(_)) => self.owed.remove(&end),
                Some(Err(error)) if error.has_nothing() => self.owed.remove(&end),
                _ => self.runtime.sleep(PAUSE).await,
            }
        }
    }
}

impl Owed {
    /// Returns whether a task has to be begun.
    fn add(&self, until: Moment, end: Arc<Call>) -> bool {
        let mut state = self.state();
        state.ends.push_back((until, end));
        if state.ends.len() > MOST {
            state.ends.pop_front();
        }
        !mem::replace(&mut state.is_seen_to, true)
    }

    /// The first end that still matters. `None` ends the task.
    fn first(&self, now: Moment) -> Option<Arc<Call>> {
        let mut state = self.state();
        while state
            .ends
            .pop_front_if(|(until, _)| *until <= now)
            .is_some()
        {}
        let first = state.ends.front().map(|(_, end)| Arc::clone(end));
        state.is_seen_to = first.is_some();
        first
    }

    fn remove(&self, end: &Arc<Call>) {
        let mut state = self.state();
        state
            .ends
            .pop_front_if(|(_, first)| Arc::ptr_eq(first, end));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl SeesTo {
    async fn run(mut self) {
        self.node.send_what_is_owed().await;
        self.is_done = true;
    }
}

impl Drop for SeesTo {
    fn drop(&mut self) {
        if !self.is_done {
            self.node.owed.state().is_seen_to = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::scripts, *};

    const fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    fn end() -> Arc<Call> {
        Arc::new(Call::new(&scripts::CANCEL, &["key"]))
    }

    /// Catches: the ends for a node that is gone are sent or kept for ever, or there are two tasks.
    #[test]
    fn an_end_is_owed_until_it_is_answered_or_over() {
        let (owed, [one, other, late]) = (Owed::default(), [end(), end(), end()]);
        assert!(owed.add(at(10), Arc::clone(&one)));
        assert!(!owed.add(at(10), other));
        assert!(!owed.add(at(20), Arc::clone(&late)));
        let is_first = |now, end| owed.first(at(now)).is_some_and(|is| Arc::ptr_eq(&is, end));
        assert!(is_first(9, &one));
        owed.remove(&late);
        assert!(is_first(9, &one));
        owed.remove(&one);
        assert!(is_first(10, &late));
        assert!(owed.first(at(20)).is_none());
        assert!(owed.add(at(30), one), "the task has ended");
    }

    /// Catches: the ends for a node that is silent for a long time take all memory.
    #[test]
    fn of_too_many_ends_the_first_are_forgotten() {
        let (owed, first) = (Owed::default(), end());
        owed.add(at(9), Arc::clone(&first));
        for _ in 0..MOST {
            owed.add(at(9), end());
        }
        assert_eq!(owed.state().ends.len(), MOST);
        assert!(!Arc::ptr_eq(&owed.first(at(0)).unwrap(), &first));
    }
}
