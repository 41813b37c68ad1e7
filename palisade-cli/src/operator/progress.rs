use std::time::{Duration, Instant};

use lock_core::ResourceName;

use crate::console::Console;

/// Reports the progress of a long operation: its first step, and then at most once a second.
#[derive(Debug, Default)]
pub(super) struct Progress {
    told: Option<Instant>,
}

impl Progress {
    const PAUSE: Duration = Duration::from_secs(1);

    pub(super) fn tell(&mut self, what: &str, resource: &ResourceName, done: u64) {
        if self.told.is_none_or(|told| told.elapsed() >= Self::PAUSE) {
            Console::Stderr.line(format!("{what}: {done}, the last one is {resource}"));
            self.told = Some(Instant::now());
        }
    }
}
