//! Steps that call code of others. They never hold the lock of the state, because that code takes
//! this lock itself.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
};

use lock_core::backend::{BoxFuture, Moment, support::lock};

use super::{
    state::{Next, State},
    task::Task,
    trace::Event,
};

pub(super) struct Shared {
    pub(super) seed: u64,
    state: Mutex<State>,
}

impl Shared {
    pub(super) const fn new(seed: u64, state: State) -> Self {
        let state = Mutex::new(state);
        Self { seed, state }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The true time.
    pub(super) fn now(&self) -> Moment {
        let nanos = self.state().now;
        Moment::from_origin(std::time::Duration::from_nanos(nanos))
    }

    pub(super) fn spawn(&self, process: usize, task: BoxFuture<'static, ()>) {
        let refused = self.state().spawn(process, task).err();
        if let Some(task) = refused {
            self.drop_of(process, task);
        }
    }

    /// Polls one task, or finds out why there is none to poll.
    pub(super) fn step(&self, until: u64) -> Option<Next> {
        loop {
            let next = self.state().next(until);
            match next {
                Next::Wake(wakers) => wakers.into_iter().for_each(std::task::Waker::wake),
                Next::Poll(number, task) => {
                    self.poll(number, task);
                    return None;
                }
                other => return Some(other),
            }
        }
    }

    fn poll(&self, number: usize, mut task: Task) {
        let Task { future, waker, .. } = &mut task;
        let mut context = Context::from_waker(waker);
        let poll = AssertUnwindSafe(|| future.as_mut().poll(&mut context));
        let polled = catch_unwind(poll);
        let process = self.state().process_of(number);
        let ended = match polled {
            Ok(Poll::Pending) => self.state().end_poll(number, task),
            Ok(Poll::Ready(())) => {
                self.state().end(number, Event::Ended);
                Some(task)
            }
            Err(panic) => {
                let mut state = self.state();
                state.panicked(process, message(&*panic));
                state.end(number, Event::Panicked);
                Some(task)
            }
        };
        if let Some(task) = ended {
            self.drop_of(process, task);
        }
    }

    pub(super) fn kill(&self, process: usize) {
        let tasks = self.state().kill(process);
        for task in tasks {
            self.drop_of(process, task);
        }
    }

    /// Drops something of a process, whose drop may panic.
    fn drop_of<T>(&self, process: usize, dropped: T) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(dropped))) {
            self.state().panicked(process, message(&*panic));
        }
    }

    pub(super) fn tell(&self, line: impl FnOnce() -> (Option<Arc<str>>, String)) {
        let is_kept = self.state().trace.is_kept;
        let line = is_kept.then(line);
        self.state().told(line);
    }

    pub(super) fn note(&self, number: u64) {
        self.state().trace.note(number);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = &self.seed;
        f.debug_struct("Shared")
            .field("seed", seed)
            .finish_non_exhaustive()
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}
