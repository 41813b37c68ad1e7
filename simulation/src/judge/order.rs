//! G7: a lease that is pushed goes to the holder that has waited longest.

use std::collections::BTreeMap;

use lock_core::{Holder, ResourceName, backend::AttemptId};

use super::{Finding, Promised};
use crate::service::{Change, Effect, Event, Fault, Way};

/// The waiters of each resource, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Order(BTreeMap<ResourceName, Vec<(AttemptId, Holder)>>);

impl Order {
    pub(super) fn served(&mut self, promised: Promised, event: &Event) -> Finding {
        match event {
            Event::Changed(effect) => self.changed(promised, effect),
            Event::Fault(Fault::QueueLost | Fault::EverythingLost | Fault::FailedOver) => {
                self.0.clear();
                None
            }
            _ => None,
        }
    }

    fn changed(&mut self, promised: Promised, effect: &Effect) -> Finding {
        let waiters = self.0.entry(effect.resource.clone()).or_default();
        match effect.change {
            Change::Queued { attempt } => {
                waiters.push((attempt, effect.holder));
                None
            }
            Change::Unqueued { attempt } => {
                waiters.retain(|(waiter, _)| *waiter != attempt);
                None
            }
            Change::Granted { way, token, .. } => {
                let first = waiters.first().map(|(_, holder)| *holder);
                let is_its_turn = first.is_none_or(|first| first == effect.holder);
                waiters.retain(|(_, holder)| *holder != effect.holder);
                (way == Way::Push && promised.leases && !is_its_turn).then(|| {
                    let what = format!(
                        "{} goes past the first waiter with {token}",
                        effect.resource
                    );
                    ("G7", what)
                })
            }
            Change::Joined { .. } => {
                waiters.retain(|(_, holder)| *holder != effect.holder);
                None
            }
            _ => None,
        }
    }
}
