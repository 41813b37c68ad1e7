//! The waiters of a process at a lock service in a database.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use foldhash::{HashMap, HashMapExt as _};
use tokio::sync::Notify;
use tracing::debug;

use super::Leases;
use crate::{
    Error, ErrorKind,
    backend::{
        AttemptRef, Moment, Wake, WakeUps,
        support::{OwnedTask, fingerprint, lock},
    },
};

/// The pause between two signs of life. A waiter that has given none for 3 s is passed over.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// The pause before the second look. Each pause after it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The names of a waiter, as the database shows them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a lock service makes it")]
pub struct WaiterKey {
    /// Without the prefix of its lease.
    pub resource: String,
    /// The fingerprint of the holder.
    pub holder: String,
    /// The fingerprint of the attempt.
    pub attempt: String,
}

/// The place of a waiter in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a lock service makes it")]
pub struct Place {
    /// Whether the waiter is the first and the lease is free.
    pub turn: bool,
    /// Whether no other holder is before the waiter.
    pub first: bool,
    /// The time that is left of the lease.
    pub left: Duration,
}

/// The waiters of this process at a lock service in a database. One task looks for all of them
/// while there are some.
pub struct Waiters<D> {
    database: Arc<D>,
    state: Mutex<State>,
    /// A waiter has come, or the place of one may have changed: look now.
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiters: BTreeMap<WaiterKey, Waiter>,
    looking: Option<OwnedTask>,
    listening: Option<OwnedTask>,
    stopped: bool,
}

struct Waiter {
    attempt: String,
    wake_ups: Arc<WakeUps>,
    /// The database has said that it waits.
    queued: bool,
}

/// One attempt among the waiters, until this is dropped.
pub(super) struct Waiting<D> {
    waiters: Arc<Waiters<D>>,
    key: WaiterKey,
    wake_ups: Arc<WakeUps>,
}

impl<D: Leases> Waiters<D> {
    /// No waiters yet.
    pub(super) fn new(database: Arc<D>) -> Arc<Self> {
        Arc::new(Self {
            database,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// The client that looks for them.
    #[must_use]
    pub fn database(&self) -> &D {
        &self.database
    }

    /// Makes a place for an attempt. It is called before the first request, so that no wake-up is
    /// missed.
    pub(super) fn place(self: &Arc<Self>, attempt: &AttemptRef) -> Waiting<D> {
        let id = attempt.id.to_string();
        let key = WaiterKey {
            resource: attempt.resource.as_str().to_owned(),
            holder: attempt.holder.fingerprint(),
            attempt: fingerprint(&id),
        };
        let wake_ups = Arc::<WakeUps>::default();
        let waiter = Waiter {
            attempt: id,
            wake_ups: Arc::clone(&wake_ups),
            queued: false,
        };
        lock(&self.state).waiters.insert(key.clone(), waiter);
        Waiting {
            waiters: Arc::clone(self),
            key,
            wake_ups,
        }
    }

    /// Wakes the waiters of a holder, given by its fingerprint, because it may be their turn.
    pub fn wake(&self, resource: &str, holder: &str) {
        let first = WaiterKey {
            resource: resource.to_owned(),
            holder: holder.to_owned(),
            attempt: String::new(),
        };
        let state = lock(&self.state);
        let from = state.waiters.range(first..);
        let its = from.take_while(|(key, _)| key.resource == resource && key.holder == holder);
        its.for_each(|(_, waiter)| waiter.wake_ups.wake(Wake::Look));
    }

    /// Looks without a pause: a turn may have come, or a wake-up may have been lost.
    pub fn look_now(&self) {
        self.changed.notify_one();
    }

    /// Ends the tasks. A waiter that is left looks once by itself when its wait is over.
    pub(super) fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        drop((state.looking.take(), state.listening.take()));
    }

    /// Starts the tasks that look, and that listen, for the waiters, unless they run.
    fn start(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        if state.stopped {
            return;
        }
        let tasks = self.database.tasks();
        if state.looking.is_none() {
            let looking = Arc::clone(self).look_while_some_wait();
            state.looking = Some(tasks.own(looking));
        }
        let listens = state.listening.as_ref();
        if listens.is_none_or(OwnedTask::is_finished) {
            let listening = D::listen(Arc::clone(self));
            state.listening = listening.map(|listening| tasks.own(listening));
        }
    }

    async fn look_while_some_wait(self: Arc<Self>) {
        let runtime = self.database.tasks().runtime();
        let (mut pause, mut alive_at) = (FIRST_PAUSE, Moment::default());
        let mut is_silent = false;
        loop {
            {
                let mut state = lock(&self.state);
                if state.waiters.is_empty() {
                    state.looking = None;
                    return;
                }
            }
            let now = runtime.now();
            let touch = now >= alive_at;
            let first = match self.look_once(touch).await {
                Ok(first) => {
                    if touch {
                        alive_at = now + SIGN_OF_LIFE;
                    }
                    if std::mem::take(&mut is_silent) {
                        self.wake_all(Wake::Heard);
                    }
                    first.unwrap_or(SIGN_OF_LIFE)
                }
                // No sign of life was given, so the next one is due at once, and not in a second.
                Err(error) => {
                    debug!(%error, "the waiters are looked for again");
                    alive_at = runtime.now() + pause;
                    is_silent |= error.kind() == ErrorKind::Unavailable;
                    if is_silent {
                        // A waiter that already knows of the silence keeps the time that it has.
                        self.wake_all(Wake::Silent(now));
                    }
                    pause
                }
            };
            let longest = self.database.longest_pause();
            let next = longest.map_or(first, |_| std::cmp::min(first, pause));
            let until = std::cmp::min(runtime.now() + next, alive_at);
            tokio::select! {
                biased;
                () = runtime.sleep_until(until) => {
                    pause = std::cmp::min(pause * 2, longest.unwrap_or(SIGN_OF_LIFE));
                }
                () = self.changed.notified() => pause = FIRST_PAUSE,
            }
        }
    }

    fn wake_all(&self, wake: Wake) {
        let state = lock(&self.state);
        let waiters = state.waiters.values();
        waiters.for_each(|waiter| waiter.wake_ups.wake(wake));
    }

    /// Looks once for all queued waiters, and wakes those that should ask again. Returns the time
    /// after which a lease has ended, if one of them is the first in its queue.
    async fn look_once(&self, touch: bool) -> Result<Option<Duration>, Error> {
        let queued: Vec<(WaiterKey, String)> = {
            let state = lock(&self.state);
            let queued = state.waiters.iter().filter(|(_, waiter)| waiter.queued);
            queued
                .map(|(key, waiter)| (key.clone(), waiter.attempt.clone()))
                .collect()
        };
        if queued.is_empty() {
            return Ok(None);
        }
        let (keys, attempts): (Vec<_>, Vec<_>) = queued.into_iter().unzip();
        let mut found = HashMap::new();
        found.extend(self.database.look(&attempts, touch).await?);
        let mut next = None;
        let state = lock(&self.state);
        for key in keys {
            let (waiter, found) = (state.waiters.get(&key), found.get(&key));
            match (waiter, found) {
                // An attempt that is not in the queue any more takes a new place.
                (Some(waiter), None | Some(Place { turn: true, .. })) => {
                    waiter.wake_ups.wake(Wake::Look);
                }
                (
                    Some(_),
                    Some(Place {
                        first: true, left, ..
                    }),
                ) => {
                    let left = *left + Duration::from_millis(1);
                    next = Some(next.map_or(left, |next| std::cmp::min(next, left)));
                }
                _ => {}
            }
        }
        Ok(next)
    }
}

impl<D: Leases> Waiting<D> {
    /// The database has said that this attempt waits.
    pub(super) fn queued(&self) {
        if let Some(waiter) = lock(&self.waiters.state).waiters.get_mut(&self.key) {
            waiter.queued = true;
        }
        self.waiters.look_now();
        self.waiters.start();
    }

    /// Completes when it may be the turn of this attempt, or when the silence of the database
    /// begins or ends.
    pub(super) async fn woken(&self) -> Wake {
        self.wake_ups.next().await
    }
}

impl<D> Drop for Waiting<D> {
    fn drop(&mut self) {
        lock(&self.waiters.state).waiters.remove(&self.key);
    }
}

impl<D> fmt::Debug for Waiters<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").finish_non_exhaustive()
    }
}
