use std::{
    fmt, mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Wake, Waker},
};

use lock_core::backend::{BoxFuture, support::lock};

/// The numbers of tasks that were woken, in that order. Wakers share nothing else with the world,
/// so a task that keeps its own waker keeps no world alive.
pub(super) type Inbox = Arc<Mutex<Vec<usize>>>;

/// A task that has not ended. While it is polled it is out of its slot.
pub(super) struct Task {
    pub(super) future: BoxFuture<'static, ()>,
    wakeup: Arc<Wakeup>,
    /// The waker is made once. Each poll borrows it.
    pub(super) waker: Waker,
}

/// The place of a task. It outlives the task, so that a late waker wakes no other task.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) process: usize,
    pub(super) task: Option<Task>,
}

struct Wakeup {
    number: usize,
    /// Whether the task is ready already, or will be once it is out of its poll.
    is_woken: AtomicBool,
    inbox: Inbox,
}

impl Task {
    /// A new task is ready.
    pub(super) fn new(number: usize, future: BoxFuture<'static, ()>, inbox: &Inbox) -> Self {
        let wakeup = Arc::new(Wakeup {
            number,
            is_woken: AtomicBool::new(false),
            inbox: Arc::clone(inbox),
        });
        let waker = Waker::from(Arc::clone(&wakeup));
        waker.wake_by_ref();
        Self {
            future,
            wakeup,
            waker,
        }
    }

    /// From here on a wake-up makes the task ready again.
    pub(super) fn begin_poll(&self) {
        self.wakeup.is_woken.store(false, Ordering::Relaxed);
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::Relaxed) {
            lock(&self.inbox).push(self.number);
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = &self.wakeup.number;
        f.debug_tuple("Task").field(number).finish()
    }
}

/// Moves all numbers out, and keeps the memory of the inbox.
pub(super) fn woken(inbox: &Inbox, into: &mut Vec<usize>) {
    into.clear();
    mem::swap(&mut *lock(inbox), into);
}
