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

#[cfg(test)]
mod tests {
    use lock_core::{
        FencingToken,
        backend::{AttemptRef, Moment},
    };
    use lock_testing::ManualClock;

    use super::*;
    use crate::{plan, service::MessageId};

    /// Catches: a rule that no order of grants breaks.
    #[test]
    fn a_lease_that_goes_past_the_first_waiter_is_noticed() {
        let clock = ManualClock::seeded(1);
        let resource = ResourceName::new("r0").expect("it is valid");
        let waiter = || AttemptRef::new(&clock, resource.clone(), Holder::draw(&clock));
        let (first, second) = (waiter(), waiter());
        let event = |of: &AttemptRef, change| {
            Event::Changed(Effect {
                by: MessageId {
                    client: 0,
                    number: 0,
                },
                resource: resource.clone(),
                holder: of.holder,
                change,
            })
        };
        let granted = |of: &AttemptRef| {
            let change = Change::Granted {
                token: FencingToken::MIN,
                attempt: of.id,
                until: Moment::NEVER,
                way: Way::Push,
            };
            event(of, change)
        };
        let mut promised = Promised::of(&plan::drawn_plan(1));
        promised.leases = true;
        for (served, is_noticed) in [(&first, false), (&second, true)] {
            let mut order = Order::default();
            for waiter in [&first, &second] {
                let queued = event(waiter, Change::Queued { attempt: waiter.id });
                assert_eq!(order.served(promised, &queued), None);
            }
            let finding = order.served(promised, &granted(served));
            assert_eq!(finding.is_some(), is_noticed);
        }
    }
}
