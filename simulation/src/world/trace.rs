use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use lock_core::backend::Moment;

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

/// An odd number without a pattern (from the golden ratio), which spreads bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The record of a run: a digest, and lines if they are wanted.
#[derive(Debug, Default)]
pub(super) struct Trace {
    digest: u64,
    pub(super) is_kept: bool,
    lines: Vec<Line>,
}

/// One line of a record: something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The true time.
    pub at: Moment,
    /// The process that did it, unless another actor was named.
    pub who: Arc<str>,
    /// The event, as the rest of a sentence that begins with `who`.
    pub what: Cow<'static, str>,
}

/// The text of a [`Line`] about a process that is stopped.
pub const PAUSES: &str = "pauses";

/// The text of a [`Line`] about a process whose pause is over.
pub const GOES_ON: &str = "goes on";

/// The text of a [`Line`] about a process that is killed.
pub const IS_KILLED: &str = "is killed";

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
    pub(super) fn keep(&mut self, now: u64, who: &Arc<str>, what: impl Into<Cow<'static, str>>) {
        if self.is_kept {
            self.lines.push(Line {
                at: Moment::from_origin(Duration::from_nanos(now)),
                who: Arc::clone(who),
                what: what.into(),
            });
        }
    }

    pub(super) fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, who, what } = self;
        let at = at.since_origin().as_secs_f64() * 1e3;
        write!(f, "{at:9.1} ms  {who:<12}  {what}")
    }
}
