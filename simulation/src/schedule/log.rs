use std::{
    fmt,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use lock_core::backend::{Moment, support::lock};

use crate::{
    coverage::Coverage,
    history::{Happened, History},
    judge::{
        Judge,
        act::{Act, Row, Stored, WriteId},
    },
    schedule::Promises,
    service,
    world::Process,
};

/// The events of a schedule, in order. They are judged, counted and, on request, written down.
pub(crate) struct Log {
    world: Process,
    judge: Mutex<Judge>,
    coverage: Mutex<Coverage>,
    writes: AtomicU64,
    /// Kept on request.
    history: Option<Mutex<History>>,
    promises: Promises,
}

impl Log {
    pub(crate) fn new(
        world: Process,
        judge: Judge,
        keeps_history: bool,
        promises: Promises,
    ) -> Self {
        Self {
            world,
            judge: Mutex::new(judge),
            coverage: Mutex::default(),
            writes: AtomicU64::new(0),
            history: keeps_history.then(Mutex::default),
            promises,
        }
    }

    pub(crate) fn judge(&self) -> MutexGuard<'_, Judge> {
        lock(&self.judge)
    }

    pub(crate) fn coverage(&self) -> MutexGuard<'_, Coverage> {
        lock(&self.coverage)
    }

    /// The number of a new write.
    pub(crate) fn new_write(&self) -> WriteId {
        self.writes.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Moment {
        self.world.true_time()
    }

    /// A client has done something.
    pub(crate) fn act(&self, client: u32, act: &Act) {
        self.world
            .tell_of(|| (format!("client {client}").into(), act.to_string()));
        self.keep(|| Happened::Act(client, act.clone()));
        self.judge().act(self.now(), client, act);
        self.coverage().act(act);
    }

    /// The store has done something.
    pub(crate) fn stored(&self, stored: &Stored) {
        self.world.tell_of(|| ("store".into(), stored.to_string()));
        self.keep(|| Happened::Stored(stored.clone()));
        self.judge().stored(self.now(), stored);
    }

    /// The lock service has done something.
    pub(crate) fn served(&self, event: &service::Event) {
        self.keep(|| Happened::Served(event.clone()));
        self.judge().served(self.now(), event);
        self.world.tell_of(|| {
            let client = event.attempt().and_then(|id| self.judge().client_of(id));
            let of = client.map_or_else(String::new, |client| format!(" of client {client}"));
            (event.who(), format!("{event}{of}"))
        });
        self.coverage().served(event);
        if self.promises == Promises::AndMadeUp
            && let Some(resource) = event.ran_out()
        {
            self.broke("made-up", format!("{resource} has run out"));
        }
    }

    fn keep(&self, happened: impl FnOnce() -> Happened) {
        if let Some(history) = &self.history {
            lock(history).0.push((self.now(), happened()));
        }
    }

    /// All that has happened, if it was kept. It is no longer kept.
    pub(super) fn take_history(&self) -> History {
        let history = self.history.as_ref();
        history.map_or_else(History::default, |history| {
            std::mem::take(&mut lock(history))
        })
    }

    /// Everything is over.
    pub(crate) fn end(&self) {
        self.judge().end(self.now());
    }

    /// Everything is over, and the store has these rows. Its steps were not seen.
    pub(crate) fn judge_rows(&self, rows: &[(String, Row)]) {
        self.judge().end_with(self.now(), rows);
    }

    /// Something outside of the clients has happened.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        self.world.tell(line);
    }

    /// A promise is broken.
    pub(crate) fn broke(&self, promise: &'static str, what: String) {
        self.judge().broke(promise, self.now(), what);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}
