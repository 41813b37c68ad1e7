use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use super::{Fault, lock};

/// A fault that waits for its message. It springs once, and not after this value is dropped.
#[derive(Debug)]
pub struct Trap {
    snare: Arc<Snare>,
}

impl Trap {
    /// Whether the fault has happened.
    pub fn has_sprung(&self) -> bool {
        self.connection().is_some()
    }

    /// The number of the connection that it happened on.
    pub fn connection(&self) -> Option<usize> {
        self.snare.sprung_on.get().copied()
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.snare.armed.store(false, Ordering::Release);
    }
}

/// The messages that a trap looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Request,
    /// Looks at requests, and springs at the reply.
    ReplyTo,
    Push,
}

/// The part of a trap that lies in the network.
#[derive(Debug)]
pub(super) struct Snare {
    place: Place,
    text: Box<[u8]>,
    fault: Fault,
    armed: AtomicBool,
    sprung_on: OnceLock<usize>,
}

impl Snare {
    /// Springs, and returns the fault for the connection.
    pub(super) fn spring(&self, connection: usize) -> Fault {
        self.sprung_on.get_or_init(|| connection);
        self.fault
    }
}

/// All traps of a proxy that have not been triggered.
#[derive(Debug, Default)]
pub(super) struct Traps(Mutex<Vec<Arc<Snare>>>);

impl Traps {
    pub(super) fn set(&self, place: Place, text: &str, fault: Fault) -> Trap {
        let snare = Arc::new(Snare {
            place,
            text: text.as_bytes().into(),
            fault,
            armed: AtomicBool::new(true),
            sprung_on: OnceLock::new(),
        });
        lock(&self.0).push(Arc::clone(&snare));
        Trap { snare }
    }

    /// The trap that this message triggers. No other message triggers it any more.
    pub(super) fn triggered(&self, place: Place, message: &[u8]) -> Option<Arc<Snare>> {
        let mut snares = lock(&self.0);
        snares.retain(|snare| snare.armed.load(Ordering::Acquire));
        let mentions = |text: &[u8]| {
            let mut windows = message.windows(text.len());
            windows.any(|window| window == text)
        };
        let found = snares
            .iter()
            .position(|snare| snare.place == place && mentions(&snare.text))?;
        Some(snares.remove(found))
    }
}
