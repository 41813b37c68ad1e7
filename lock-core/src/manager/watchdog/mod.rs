//! The watchdog, the only task of a manager. It renews leases in batches and finishes work that
//! callers dropped.

mod desk;
mod pace;
mod schedule;
mod task;

use std::{
    sync::Arc,
    task::{Context, Waker},
};

use tokio::{runtime, sync::watch};

use self::{
    desk::{Desk, Phase},
    schedule::Key,
    task::Task,
};
use super::{lost::LostReason, meter::Meter, status::LeaseStatus};
use crate::{BoxFuture, LockService, Moment, Runtime};

/// The manager's end of the watchdog. Nothing here blocks.
#[derive(Debug)]
pub(super) struct Handle {
    desk: Arc<Desk>,
    /// The runtime of the watchdog. A request registers its timers with the runtime that polls it
    /// first.
    runtime: runtime::Id,
    frozen: watch::Sender<bool>,
}

/// A lease in the watchdog's schedule. It is taken out when this is dropped.
#[derive(Debug)]
pub(super) struct Watched {
    desk: Arc<Desk>,
    key: Key,
}

/// Starts the watchdog task. It ends after a shutdown, or when the manager and all guards are gone.
///
/// # Panics
/// Outside a Tokio runtime.
pub(super) fn start(backend: LockService, runtime: Arc<dyn Runtime>, meter: Arc<Meter>) -> Handle {
    let (desk, frozen) = (Arc::new(Desk::new()), watch::Sender::new(false));
    let here = runtime::Handle::current();
    let task = Task::new(
        backend,
        Arc::clone(&runtime),
        meter,
        Arc::clone(&desk),
        frozen.subscribe(),
    );
    runtime.spawn(&here, Box::pin(task.run()));
    Handle {
        desk,
        runtime: here.id(),
        frozen,
    }
}

impl Handle {
    /// Puts a lease under the watchdog from this moment on. The watchdog renews the lease unless
    /// its settings say otherwise, and notices its end. If the watchdog has ended, the lease is
    /// lost.
    pub(super) fn watch(&self, lease: &Arc<LeaseStatus>, from: Moment) -> Option<Watched> {
        let moment = pace::together(lease.since(), from);
        let key = self.desk.add(lease, moment);
        if key.is_none() {
            lease.lose(LostReason::ShutDown);
        }
        key.map(|key| Watched {
            desk: Arc::clone(&self.desk),
            key,
        })
    }

    /// Makes the watchdog finish a clean-up, for which no caller waits. Returns false if the
    /// watchdog has ended.
    ///
    /// The clean-up is begun here. If nothing delays it, its request is sent ahead of anything that
    /// the caller sends next. If a task had to be woken first, the caller's next request could
    /// overtake it.
    pub(super) fn finish(&self, mut clean_up: BoxFuture<'static, ()>) -> bool {
        let mut without_waker = Context::from_waker(Waker::noop());
        if self.may_begin_here() && clean_up.as_mut().poll(&mut without_waker).is_ready() {
            return true;
        }
        self.desk.finish(clean_up)
    }

    fn may_begin_here(&self) -> bool {
        let here = runtime::Handle::try_current();
        here.is_ok_and(|here| here.id() == self.runtime)
            && !*self.frozen.borrow()
            && !std::thread::panicking()
    }

    /// Makes the watchdog finish the work that it has and stop renewing.
    ///
    /// # Cancel safety
    /// The shutdown goes on by itself.
    pub(super) async fn shut_down(&self) {
        self.desk.close();
        self.desk.reached(Phase::Ended).await;
    }

    /// Completes when the watchdog takes no more work.
    pub(super) async fn closed(&self) {
        self.desk.reached(Phase::Closed).await;
    }

    /// Stops the whole watchdog, as if the process were stopped, or lets it go on.
    #[cfg(feature = "test-util")]
    pub(super) fn freeze(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }
}

impl Watched {
    /// Makes the watchdog renew the lease at this moment, unless its renewal is planned sooner.
    pub(super) fn renew_by(&self, moment: Moment) {
        self.desk.hasten(self.key, moment);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.desk.close();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.desk.remove(self.key);
    }
}
