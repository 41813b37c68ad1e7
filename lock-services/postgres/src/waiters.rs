use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Error,
    backend::{
        AttemptRef, Wake,
        support::{
            OwnedTask, lock,
            waiters::{self, Look, Place, WaiterKey},
        },
    },
};
use sqlx::Row;

use super::{
    client::Client,
    error::translate,
    listener::{self, ListenAddress, ListenEvent},
    rows::number,
    sql,
};

/// The waiters of this process. From the first one on, a task listens for notices of their turns.
pub(super) struct Waiters {
    looking: Arc<waiters::Waiters<LookByChannel>>,
    address: ListenAddress,
    listening: Mutex<Option<OwnedTask>>,
}

pub(super) struct LookByChannel {
    client: Arc<Client>,
    /// The channel of notices about turns: one for each client.
    channel: String,
    /// Whether notices arrive.
    listens: AtomicBool,
}

/// The place of one attempt, until this is dropped.
pub(super) struct Waiting {
    place: waiters::Waiting<LookByChannel>,
    waiters: Arc<Waiters>,
}

impl Waiters {
    pub(super) fn new(client: Arc<Client>, address: ListenAddress) -> Arc<Self> {
        let channel = format!("fenced_{:016x}", client.runtime.random() >> 64);
        let tasks = client.tasks.clone();
        let look = LookByChannel {
            client,
            channel,
            listens: AtomicBool::new(false),
        };
        Arc::new(Self {
            looking: waiters::Waiters::new(look, tasks),
            address,
            listening: Mutex::default(),
        })
    }

    pub(super) fn channel(&self) -> &str {
        &self.looking.look().channel
    }

    /// Makes a place for an attempt, so that no notice of its turn is missed.
    pub(super) fn place(self: &Arc<Self>, attempt: &AttemptRef) -> Waiting {
        Waiting {
            place: self.looking.place(attempt),
            waiters: Arc::clone(self),
        }
    }

    /// Ends the tasks.
    pub(super) fn stop(&self) {
        self.looking.stop();
        drop(lock(&self.listening).take());
    }

    /// Starts the task that listens, if there is none.
    fn listen(&self) {
        let mut listening = lock(&self.listening);
        if listening.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let look = self.looking.look();
        let (client, channel) = (Arc::clone(&look.client), look.channel.clone());
        let looking = Arc::clone(&self.looking);
        let tell = move |event: ListenEvent<'_>| on_event(&looking, event);
        let task = listener::listen(client, self.address.clone(), channel, tell);
        *listening = Some(look.client.tasks.own(task));
    }
}

fn on_event(looking: &waiters::Waiters<LookByChannel>, event: ListenEvent<'_>) {
    match event {
        // It says `resource fingerprint`.
        ListenEvent::Notice(notice) => {
            let (resource, holder) = notice.split_once(' ').unwrap_or_default();
            looking.wake(resource, holder);
        }
        // Before that, some may have been lost.
        ListenEvent::Connected | ListenEvent::Disconnected => {
            let listens = matches!(event, ListenEvent::Connected);
            looking.look().listens.store(listens, Ordering::Relaxed);
            looking.look_now();
        }
    }
}

impl Look for LookByChannel {
    async fn look(
        &self,
        attempts: &[String],
        touch: bool,
    ) -> Result<Vec<(WaiterKey, Place)>, Error> {
        let alive = if touch { attempts.to_vec() } else { Vec::new() };
        let rows = self.client.rows(sql::look(&self.channel, alive)).await?;
        let seen = rows.iter().map(|row| {
            let text = |column| row.try_get::<String, _>(column).map_err(translate);
            let flag = |column| row.try_get::<bool, _>(column).map_err(translate);
            let key = WaiterKey {
                resource: text("resource")?,
                holder: text("holder")?,
                attempt: text("attempt")?,
            };
            let place = Place {
                turn: flag("turn")?,
                first: flag("first")?,
                left: Duration::from_millis(number(row, "left_ms")?),
            };
            Ok((key, place))
        });
        seen.collect()
    }

    fn longest_pause(&self) -> Option<Duration> {
        const WITHOUT_NOTICES: Duration = Duration::from_millis(250);
        (!self.listens.load(Ordering::Relaxed)).then_some(WITHOUT_NOTICES)
    }
}

impl Waiting {
    /// The database has said that this attempt waits.
    pub(super) fn queued(&self) {
        self.place.queued();
        self.waiters.listen();
    }

    /// Completes when it may be the turn of this attempt, or when the silence of the database
    /// begins or ends.
    pub(super) async fn woken(&self) -> Wake {
        self.place.woken().await
    }
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").finish_non_exhaustive()
    }
}
