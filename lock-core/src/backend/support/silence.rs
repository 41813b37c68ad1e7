use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{Patience, lock};
use crate::{Clock, Error, ErrorKind, Moment, Wait};

/// How long an answer may take that is asked for when the wait is over: longer than it takes around
/// the world and back.
const GRACE: Duration = Duration::from_millis(500);

/// Since when a lock service is silent: requests are under way, and none of them was answered.
///
/// It ends acquires whose requests are sent by layers that know nothing of their wait.
#[derive(Debug)]
pub struct Silence {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    since: Option<Moment>,
}

/// A request that is under way, until this is dropped.
#[derive(Debug)]
#[must_use = "it is under way until this is dropped"]
pub struct Asking<'a>(&'a Silence);

impl Silence {
    /// Nothing is under way.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::default(),
        }
    }

    /// A request is sent.
    pub fn ask(&self) -> Asking<'_> {
        let mut state = lock(&self.state);
        state.under_way += 1;
        state.since.get_or_insert_with(|| self.clock.now());
        Asking(self)
    }

    /// Completes when the service has been silent for as long as an acquire asks: until its wait is
    /// over, and for [`Patience::LONG`] at most. One that does not wait asks for `look`.
    ///
    /// The error says that the outcome is unknown.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn outlasts(&self, wait: Wait, look: Duration) -> Error {
        let began = self.clock.now();
        loop {
            let now = self.clock.now();
            let since = lock(&self.state).since;
            let since = since.map(|since| std::cmp::max(since, began));
            let end = end_of(wait, look, since.unwrap_or(now));
            if since.is_some() && end <= now {
                return Error::unknown(ErrorKind::Unavailable)
                    .because("no answer before the wait was over");
            }
            self.clock.sleep_until(end).await;
        }
    }
}

impl Asking<'_> {
    /// It was answered: the service is not silent.
    pub fn answered(&self) {
        lock(&self.0.state).since = Some(self.0.clock.now());
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.under_way -= 1;
        if state.under_way == 0 {
            state.since = None;
        }
    }
}

/// When an acquire has asked a silent service for long enough.
fn end_of(wait: Wait, look: Duration, silent_since: Moment) -> Moment {
    let longest = silent_since + Patience::LONG;
    match wait {
        Wait::Never => silent_since + look,
        Wait::Until(end) => std::cmp::min(std::cmp::max(end, silent_since + GRACE), longest),
        Wait::Forever => longest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemClock;

    /// Catches: an idle connection counts as silent, or one that answers others.
    #[test]
    fn silence_is_only_while_something_is_under_way_and_since_the_last_answer() {
        let silence = Silence::new(Arc::new(SystemClock));
        let since = || lock(&silence.state).since;
        assert_eq!(since(), None);
        let first = silence.ask();
        let began = since();
        assert!(began.is_some());
        let second = silence.ask();
        assert_eq!(since(), began);
        second.answered();
        drop(second);
        assert!(since() >= began);
        drop(first);
        assert_eq!(since(), None);
    }

    /// Catches: a wait without bound asks a dead service for ever.
    #[test]
    fn an_acquire_asks_until_its_wait_is_over_and_for_so_long_at_most() {
        let (since, look) = (SystemClock.now(), Duration::from_secs(4));
        let wait = |seconds| Wait::Until(since + Duration::from_secs(seconds));
        let end = |wait| end_of(wait, look, since).since(since);
        assert_eq!(end(wait(1)), Duration::from_secs(1));
        assert_eq!(end(wait(0)), GRACE);
        assert_eq!(end(wait(60)), Patience::LONG);
        assert_eq!(end(Wait::Forever), Patience::LONG);
        assert_eq!(end(Wait::Never), look);
    }
}
