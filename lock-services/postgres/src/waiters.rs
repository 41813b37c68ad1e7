use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use foldhash::HashMap;
use lock_core::{
    Error, ErrorKind,
    backend::{
        AttemptRef, Moment, Wake, WakeUps,
        support::{OwnedTask, fingerprint, lock},
    },
};
use sqlx::Row;
use tokio::sync::Notify;
use tracing::debug;

use super::{
    client::Client,
    error::translate,
    listener::{self, ListenAddress, ListenEvent},
    rows::number,
    sql,
};

/// A waiter that has not looked for 3 s is passed over.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// How often the first in the queue looks where no notice tells it.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The waiters of this process. One task looks for all of them while there are some.
pub(super) struct Waiters {
    client: Arc<Client>,
    address: ListenAddress,
    /// The channel of notices about turns: one for each client.
    channel: String,
    /// Whether notices arrive.
    listens: AtomicBool,
    state: Mutex<State>,
    /// A waiter has come, or notices have stopped: look now.
    changed: Notify,
}

#[derive(Default)]
struct State {
    places: BTreeMap<Key, Place>,
    looking: Option<OwnedTask>,
    listening: Option<OwnedTask>,
    stopped: bool,
}

/// The resource, and the fingerprints of holder and attempt, as the database shows them.
type Key = (String, String, String);

struct Place {
    attempt: String,
    wake_ups: Arc<WakeUps>,
    /// The database has said that it waits.
    queued: bool,
}

/// The place of one attempt, until this is dropped.
pub(super) struct Waiting {
    waiters: Arc<Waiters>,
    key: Key,
    wake_ups: Arc<WakeUps>,
}

impl Waiters {
    pub(super) fn new(client: Arc<Client>, address: ListenAddress) -> Arc<Self> {
        let channel = format!("fenced_{:016x}", client.runtime.random() >> 64);
        Arc::new(Self {
            client,
            address,
            channel,
            listens: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Makes a place for an attempt, so that no notice of its turn is missed.
    pub(super) fn place(self: &Arc<Self>, attempt: &AttemptRef) -> Waiting {
        let (holder, attempt_id) = (attempt.holder, attempt.id.to_string());
        let resource = attempt.resource.as_str().to_owned();
        let key = (resource, holder.fingerprint(), fingerprint(&attempt_id));
        let wake_ups = Arc::<WakeUps>::default();
        let place = Place {
            attempt: attempt_id,
            wake_ups: Arc::clone(&wake_ups),
            queued: false,
        };
        lock(&self.state).places.insert(key.clone(), place);
        Waiting {
            waiters: Arc::clone(self),
            key,
            wake_ups,
        }
    }

    /// Ends the tasks. A waiter that is left looks for itself when its wait is over.
    pub(super) fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        drop((state.looking.take(), state.listening.take()));
    }

    fn on_event(&self, event: ListenEvent<'_>) {
        match event {
            // It says `resource fingerprint`.
            ListenEvent::Notice(notice) => {
                let (resource, holder) = notice.split_once(' ').unwrap_or_default();
                let first = (resource.to_owned(), holder.to_owned(), String::new());
                let state = lock(&self.state);
                let from = state.places.range(first..);
                let its = from
                    .take_while(|((r, h, _), _)| (r.as_str(), h.as_str()) == (resource, holder));
                its.for_each(|(_, place)| place.wake_ups.wake(Wake::Look));
            }
            // Before that, some may have been lost.
            ListenEvent::Connected | ListenEvent::Disconnected => {
                let listens = matches!(event, ListenEvent::Connected);
                self.listens.store(listens, Ordering::Relaxed);
                self.changed.notify_one();
            }
        }
    }

    /// Starts the task that looks for the waiters, if there is none.
    fn start(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        if state.stopped {
            return;
        }
        let ended = |task: &Option<OwnedTask>| task.as_ref().is_none_or(OwnedTask::is_finished);
        if ended(&state.listening) {
            let waiters = Arc::clone(self);
            let tell = move |event: ListenEvent<'_>| waiters.on_event(event);
            let (client, channel) = (Arc::clone(&self.client), self.channel.clone());
            let listening = listener::listen(client, self.address.clone(), channel, tell);
            state.listening = Some(self.client.tasks.own(listening));
        }
        if state.looking.is_none() {
            let looking = Arc::clone(self).look_while_some_wait();
            state.looking = Some(self.client.tasks.own(looking));
        }
    }

    async fn look_while_some_wait(self: Arc<Self>) {
        let runtime = &self.client.runtime;
        let (mut pause, mut alive_at) = (FIRST_PAUSE, Moment::default());
        let mut is_silent = false;
        loop {
            {
                let mut state = lock(&self.state);
                if state.places.is_empty() {
                    state.looking = None;
                    return;
                }
            }
            let now = runtime.now();
            let touch = now >= alive_at;
            let first = match self.look(touch).await {
                Ok(first) => {
                    if touch {
                        alive_at = now + SIGN_OF_LIFE;
                    }
                    if std::mem::take(&mut is_silent) {
                        self.wake_all(Wake::Heard);
                    }
                    first
                }
                // No sign of life was given: it is due at once, and not in a second.
                Err(error) => {
                    debug!(%error, "the waiters are looked for again");
                    alive_at = runtime.now() + pause;
                    is_silent |= error.kind() == ErrorKind::Unavailable;
                    if is_silent {
                        // Those that are silent already stay with the time that they know.
                        self.wake_all(Wake::Silent(now));
                    }
                    Some(pause)
                }
            };
            let listens = self.listens.load(Ordering::Relaxed);
            let first = match first {
                Some(first) if !listens => std::cmp::min(first, pause),
                first => first.unwrap_or(SIGN_OF_LIFE),
            };
            let until = std::cmp::min(runtime.now() + first, alive_at);
            tokio::select! {
                biased;
                () = runtime.sleep_until(until) => pause = std::cmp::min(pause * 2, LONGEST_PAUSE),
                () = self.changed.notified() => pause = FIRST_PAUSE,
            }
        }
    }

    fn wake_all(&self, wake: Wake) {
        let state = lock(&self.state);
        state
            .places
            .values()
            .for_each(|place| place.wake_ups.wake(wake));
    }

    /// Looks once for all queued waiters, and wakes those that should ask again. Returns the pause
    /// before the next look for the others, if one of them is the first in its queue.
    async fn look(&self, touch: bool) -> Result<Option<Duration>, Error> {
        let queued: Vec<(Key, String)> = {
            let state = lock(&self.state);
            let queued = state.places.iter().filter(|(_, place)| place.queued);
            queued
                .map(|(key, place)| (key.clone(), place.attempt.clone()))
                .collect()
        };
        if queued.is_empty() {
            return Ok(None);
        }
        let mut found = HashMap::default();
        let attempts = queued.iter().filter(|_| touch);
        let alive = attempts.map(|(_, attempt)| attempt.clone()).collect();
        let look = sql::look(&self.channel, alive);
        for row in self.client.rows(look).await? {
            let text = |column| row.try_get::<String, _>(column).map_err(translate);
            let flag = |column| row.try_get::<bool, _>(column).map_err(translate);
            let key = (text("resource")?, text("holder")?, text("attempt")?);
            let left = Duration::from_millis(number(&row, "left_ms")?);
            found.insert(key, (flag("turn")?, flag("first")?, left));
        }
        let mut next = None;
        let state = lock(&self.state);
        for (key, _) in queued {
            let (place, found) = (state.places.get(&key), found.get(&key));
            match (place, found) {
                // One that is not in the queue any more takes a place anew.
                (Some(place), None | Some((true, ..))) => place.wake_ups.wake(Wake::Look),
                (Some(_), Some((false, true, left))) => {
                    let left = *left + Duration::from_millis(1);
                    next = Some(next.map_or(left, |next| std::cmp::min(next, left)));
                }
                _ => {}
            }
        }
        Ok(next)
    }
}

impl Waiting {
    /// The database has said that this attempt waits.
    pub(super) fn queued(&self) {
        if let Some(place) = lock(&self.waiters.state).places.get_mut(&self.key) {
            place.queued = true;
        }
        self.waiters.changed.notify_one();
        self.waiters.start();
    }

    /// Completes when it may be the turn of this attempt, or when the silence of the database
    /// begins or ends.
    pub(super) async fn woken(&self) -> Wake {
        self.wake_ups.next().await
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        lock(&self.waiters.state).places.remove(&self.key);
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").finish_non_exhaustive()
    }
}
