//! The decisions of the machine in this thread, for tests that check which decisions come up.

use std::{cell::RefCell, collections::BTreeMap, fmt};

use super::{Acquisition, Answer, Event, Reply, Request, Step, Wake, state::Phase};
use crate::{ErrorKind, Outcome, Released};

/// One decision: the phase of an attempt before an event, the event, and the step that followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// The phase, and whether the caller has gone.
    pub phase: &'static str,
    /// The event.
    pub event: &'static str,
    /// The step. A step that waits says for what it waits.
    pub step: &'static str,
}

/// How often each decision came up.
pub type Decisions = BTreeMap<Decision, u64>;

thread_local! {
    static RECORD: RefCell<Option<Decisions>> = const { RefCell::new(None) };
}

/// Records the decisions of this thread until it is dropped. A newer record replaces an older one.
#[derive(Debug)]
pub struct Record(());

impl Record {
    /// An empty record.
    #[must_use]
    pub fn begin() -> Self {
        RECORD.set(Some(Decisions::new()));
        Self(())
    }

    /// The decisions so far.
    #[must_use]
    pub fn end(self) -> Decisions {
        RECORD.take().unwrap_or_default()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        RECORD.set(None);
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { phase, event, step } = self;
        write!(f, "{phase} x {event} -> {step}")
    }
}

/// Notes a decision after it was made.
pub(super) fn note(phase: &'static str, event: Event, step: Step, after: &Acquisition) {
    RECORD.with_borrow_mut(|record| {
        if let Some(record) = record {
            let (event, step) = (of_event(event), of_step(step, after));
            let decision = Decision { phase, event, step };
            *record.entry(decision).or_default() += 1;
        }
    });
}

/// The phase of an attempt.
pub(super) const fn of_phase(it: &Acquisition) -> &'static str {
    let is_gone = it.background.is_some();
    match (it.phase, is_gone) {
        (Phase::New, _) => "New",
        (Phase::Asking { request, .. }, false) => match request {
            Request::Look { .. } => "Asking Look",
            Request::Confirm(_) => "Asking Confirm",
            Request::Release { .. } => "Asking Release",
            Request::Cancel => "Asking Cancel",
        },
        (Phase::Asking { request, .. }, true) => match request {
            Request::Release { .. } => "Gone, Asking Release",
            _ => "Gone, Asking Cancel",
        },
        (Phase::Resting, _) => "Resting",
        (Phase::Pausing { request, last, .. }, false) => match (request, last) {
            (Request::Look { .. }, false) => "Pausing Look",
            (Request::Look { .. }, true) => "Pausing last Look",
            (Request::Confirm(_), _) => "Pausing Confirm",
            (Request::Release { .. }, false) => "Pausing Release",
            (Request::Release { .. }, true) => "Pausing last Release",
            (Request::Cancel, false) => "Pausing Cancel",
            (Request::Cancel, true) => "Pausing last Cancel",
        },
        (Phase::Pausing { request, .. }, true) => match request {
            Request::Release { .. } => "Gone, Pausing Release",
            _ => "Gone, Pausing Cancel",
        },
        (Phase::Holding, _) => "Holding",
        (Phase::Releasing, _) => "Releasing",
        (Phase::Ended, _) => "Ended",
    }
}

const fn of_event(event: Event) -> &'static str {
    match event {
        Event::Started { hears: true } => "Started",
        Event::Started { hears: false } => "Started without a channel",
        Event::Replied { reply, .. } => of_reply(reply),
        Event::Woken(wake) => match wake {
            Wake::Look => "Woken Look",
            Wake::Offered(_) => "Woken Offered",
            Wake::Granted(_) => "Woken Granted",
            Wake::Silent(_) => "Woken Silent",
            Wake::Heard => "Woken Heard",
        },
        Event::Due => "Due",
        Event::Release { held: true } => "Release",
        Event::Release { held: false } => "Release of a lost lease",
        Event::GiveUp => "GiveUp",
        Event::Gone => "Gone",
        Event::Closed => "Closed",
    }
}

const fn of_reply(reply: Reply) -> &'static str {
    match reply {
        Reply::Granted(_) => "Replied Granted",
        Reply::Offered(_) => "Replied Offered",
        Reply::Held { .. } => "Replied Held",
        Reply::Queued { .. } => "Replied Queued",
        Reply::Gone => "Replied Gone",
        Reply::Released(Released::Released) => "Replied Released",
        Reply::Released(Released::NotHolder) => "Replied NotHolder",
        Reply::Cancelled => "Replied Cancelled",
        Reply::Failed(failure) => match (failure.kind, failure.outcome) {
            (ErrorKind::Unavailable, Outcome::NotApplied) => "Replied Unavailable",
            (ErrorKind::Unavailable, Outcome::Unknown) => "Replied Unavailable, unknown",
            (ErrorKind::Released, _) => "Replied that it was released",
            _ => "Replied another error",
        },
    }
}

const fn of_step(step: Step, after: &Acquisition) -> &'static str {
    match step {
        Step::Send { request, .. } => match request {
            Request::Look { queue: true } => "Send Look in the queue",
            Request::Look { queue: false } => "Send Look",
            Request::Confirm(_) => "Send Confirm",
            Request::Release { tombstone: true } => "Send Release with a tombstone",
            Request::Release { tombstone: false } => "Send Release",
            Request::Cancel => "Send Cancel",
        },
        Step::Wait { .. } => match after.phase {
            Phase::Asking { .. } => "Wait for the answer",
            Phase::Pausing { .. } => "Wait for a pause",
            _ => "Wait for others",
        },
        Step::Answer(answer) => match answer {
            Answer::Granted(_) => "Answer Granted",
            Answer::Held { .. } => "Answer Held",
            Answer::Failed(_) => "Answer Failed",
            Answer::Late => "Answer Late",
            Answer::TooLate => "Answer TooLate",
            Answer::Released(Released::Released) => "Answer Released",
            Answer::Released(Released::NotHolder) => "Answer NotHolder",
            Answer::Clean => "Answer Clean",
            Answer::Abandoned => "Answer Abandoned",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Moment, Ttl,
        acquisition::{Sharing, Terms},
    };

    /// Catches: a decision that is not recorded, or one that is recorded after the end.
    #[test]
    fn decisions_are_recorded_until_the_end() {
        let started = Event::Started { hears: true };
        let decide = || {
            let mut it = Acquisition::new(Terms::new(Sharing::Alone, Ttl::secs(30)));
            it.on(started, Moment::default());
            it.on(Event::Gone, Moment::default());
        };
        let record = Record::begin();
        decide();
        let texts: Vec<_> = record.end().keys().map(Decision::to_string).collect();
        let gone = "Asking Look x Gone -> Send Cancel";
        assert_eq!(texts, [gone, "New x Started -> Send Look"]);
        decide();
        assert_eq!(Record::begin().end(), Decisions::new());
    }
}
