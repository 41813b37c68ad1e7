//! The properties that must hold in every state, and those that must be seen in some.

use stateright::Property;

use super::{
    Cohort,
    state::{Fault, Phase, State},
};

impl Cohort {
    pub(crate) fn expectations(&self) -> Vec<Property<Self>> {
        let mut expected = promises();
        if self.flaw.is_none() {
            expected.extend(sightings());
        }
        expected
    }
}

fn promises() -> Vec<Property<Cohort>> {
    vec![
        // G1. A token is greater than every token that was returned before its task began.
        Property::always("order", |_, state| never(state, Fault::OutOfOrder)),
        Property::always("unique", |_, state| never(state, Fault::Duplicate)),
        // Renew, release and forced release only touch the lease of the shared lease they name.
        Property::always("own shared only", |_, state| {
            never(state, Fault::StrangerTouched)
        }),
        // No token is returned after the lease ran out by the clock of its process. A lease that
        // was ended by force may be believed in for longer: the store refuses its tokens.
        Property::always("in time", |_, state| never(state, Fault::PassedTooLate)),
        // A process that has waiters has a lease or asks for one.
        Property::always("no lost waiter", |_, state: &State| {
            let cared_for = |side: &super::state::Side| {
                side.line.is_empty() || side.asking.is_some() || side.shared.is_some()
            };
            state.processes.iter().all(cared_for)
        }),
    ]
}

fn sightings() -> Vec<Property<Cohort>> {
    vec![
        Property::sometimes("all are served", |_, state: &State| {
            state.watch.returned.iter().all(Option::is_some)
        }),
        Property::sometimes(
            "three pass the lock on in one shared",
            |_, state: &State| {
                let served = |task: usize| match state.tasks[task] {
                    Phase::Served(shared) => Some(shared),
                    _ => None,
                };
                let all = [served(0), served(1), served(2)];
                all[0].is_some() && all.iter().all(|shared| *shared == all[0])
            },
        ),
        Property::sometimes("two believe that they hold", |_, state: &State| {
            let holds = |task: usize| state.tasks[task] == Phase::Holding;
            (0..3).any(holds) && holds(3)
        }),
        Property::sometimes(
            "a waiter is too late to be passed to",
            |_, state: &State| {
                let side = &state.processes[0];
                let eligible =
                    |task: &usize| side.shared.is_some_and(|t| t.eligible.contains(*task));
                side.shared.is_some_and(|t| t.next < t.end) && !side.line.iter().all(eligible)
            },
        ),
    ]
}

fn never(state: &State, fault: Fault) -> bool {
    !state.watch.has_seen(fault)
}
