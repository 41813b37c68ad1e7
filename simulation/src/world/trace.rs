use std::time::Duration;

/// A kind of event of a task or a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Began = 1,
    Polled,
    Ended,
    Panicked,
    Dropped,
    Paused,
    WentOn,
    Killed,
    Told,
}

/// The number that stands for no process and no task.
pub(super) const NONE: u64 = u64::MAX;

/// An odd number without a pattern (the golden ratio), with which bits are spread.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The record of a run: a digest, and lines if they are wanted.
#[derive(Debug, Default)]
pub(super) struct Trace {
    digest: u64,
    pub(super) is_kept: bool,
    lines: Vec<String>,
}

impl Trace {
    /// Folds an event into the digest.
    pub(super) fn fold(&mut self, event: Event, process: u64, task: u64, now: u64) {
        let who = process.rotate_left(48) ^ task.rotate_left(8) ^ event as u64;
        self.note(who);
        self.note(now);
    }

    /// Folds a number into the digest.
    pub(super) const fn note(&mut self, number: u64) {
        let mixed = (self.digest.rotate_left(23) ^ number).wrapping_mul(SPREAD);
        self.digest = mixed ^ (mixed >> 29);
    }

    pub(super) const fn digest(&self) -> u64 {
        self.digest
    }

    /// Keeps a line, if lines are kept.
    pub(super) fn keep(&mut self, now: u64, process: &str, line: &str) {
        if self.is_kept {
            let at = Duration::from_nanos(now).as_secs_f64() * 1e3;
            self.lines.push(format!("{at:10.3} ms  {process}: {line}"));
        }
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }
}
