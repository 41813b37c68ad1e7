use std::{
    fmt,
    mem::take,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    util::SubscriberInitExt,
};

/// The warnings of this process. When a lock service connects, it warns of settings with which a
/// server may lose state. In a service these warnings are in the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    /// Begins to listen, instead of a log.
    pub(crate) fn listen() -> Self {
        let heard = Self::default();
        tracing_subscriber::registry().with(heard.clone()).init();
        heard
    }

    /// The warnings since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        /// Warnings of other crates, such as drivers, are not findings.
        const OURS: [&str; 3] = ["palisade", "lock_core", "fenced_store"];
        let metadata = event.metadata();
        let is_ours = OURS.iter().any(|name| metadata.target().starts_with(name));
        if *metadata.level() > Level::WARN || !is_ours {
            return;
        }
        let mut message = Message::default();
        event.record(&mut message);
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !heard.contains(&message.0) {
            heard.push(message.0);
        }
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.0 = format!("{value:?}{}", self.0),
            "error" => self.0 = format!("{}: {value:?}", self.0),
            _ => {}
        }
    }
}
