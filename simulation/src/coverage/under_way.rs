use std::collections::{BTreeMap, BTreeSet};

use lock_core::{FencingToken, backend::AttemptId};

use crate::service::{Burial, Change, Effect, Event, Fault, HowEnded, Kind, MessageId, Way};

/// The part of a schedule that is under way, as far as situations depend on it.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay {
    /// Attempts that have a place.
    waiting: BTreeSet<AttemptId>,
    /// Leases that were pushed, and of which no waiter has heard yet or that are not confirmed.
    handed: BTreeMap<FencingToken, Way>,
    /// The request that the service has read last, and whether it was a copy.
    arrived: Option<(MessageId, bool)>,
    /// Looks on their way to the service.
    looks: BTreeSet<MessageId>,
}

impl UnderWay {
    /// The situation that an event makes, if it is one that needs a memory.
    pub(super) fn hear(&mut self, event: &Event) -> Option<&'static str> {
        match event {
            Event::Sent(sent) => {
                if matches!(sent.kind, Kind::Look { .. } | Kind::Together) {
                    self.looks.insert(sent.message);
                }
                None
            }
            Event::Arrived { message, copy } => {
                self.arrived = Some((*message, *copy));
                None
            }
            Event::Buried { by, end } => self.buried(*by, *end),
            Event::Pushed {
                token: Some(token), ..
            } => {
                if self.handed.get(token) == Some(&Way::Push) {
                    self.handed.remove(token);
                }
                None
            }
            Event::Changed(effect) => self.changed(effect),
            Event::Fault(Fault::QueueLost) => {
                let waited = !std::mem::take(&mut self.waiting).is_empty();
                waited.then_some("queue lost while others wait")
            }
            Event::Fault(Fault::EverythingLost | Fault::FailedOver) => {
                let had = !self.handed.is_empty();
                (self.waiting, self.handed) = Default::default();
                had.then_some("state lost during a hand-off")
            }
            _ => None,
        }
    }

    /// A request for an acquisition that has ended has come.
    fn buried(&mut self, by: MessageId, end: Burial) -> Option<&'static str> {
        let is_copy = self.arrived == Some((by, true));
        let is_look = self.looks.contains(&by);
        match (is_copy, end) {
            (true, _) => Some("copy met a tombstone"),
            (false, Burial::Cancelled) if is_look => Some("cancel before its acquire"),
            (false, _) => None,
        }
    }

    fn changed(&mut self, effect: &Effect) -> Option<&'static str> {
        match effect.change {
            Change::Queued { attempt } => {
                self.waiting.insert(attempt);
                None
            }
            Change::Unqueued { attempt } | Change::Joined { attempt, .. } => {
                self.waiting.remove(&attempt);
                None
            }
            Change::Granted {
                token,
                attempt,
                way,
                ..
            } => {
                self.waiting.remove(&attempt);
                if way != Way::Answer {
                    self.handed.insert(token, way);
                }
                None
            }
            Change::Confirmed { token, .. } => {
                self.handed.remove(&token);
                None
            }
            Change::Ended { token, how } => {
                let was_handed = self.handed.remove(&token).is_some();
                match how {
                    HowEnded::Forced { .. } if was_handed => Some("force during a hand-off"),
                    HowEnded::Cancelled if was_handed => Some("cancel during a hand-off"),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
