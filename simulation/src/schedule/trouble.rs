//! The trouble around the clients, and its end.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::backend::{Moment, Runtime};

use super::{Births, RESTARTED, Slot};
use crate::{
    clients::{Me, Surroundings},
    plan::{Death, Fault},
    store::Ledger,
    world::{Process, World},
};

/// Begins all trouble of a schedule, in a process of its own.
pub(super) fn begin<S: Ledger>(
    world: &World,
    around: &Arc<Surroundings<S>>,
    slots: &[Arc<Slot<S>>],
    operator: &Me<S>,
) {
    let fate = world.process("fate");
    for (at, fault) in around.plan.faults.clone() {
        let around = Arc::clone(around);
        let process = fate.clone();
        fate.start(async move { suffer(&process, &around, at, fault).await });
    }
    deaths(world, &fate, around, slots);
    calm(&fate, around, slots, operator);
}

async fn suffer<S: Ledger>(fate: &Process, around: &Surroundings<S>, at: Duration, fault: Fault) {
    let runtime: &dyn Runtime = fate;
    let service = &around.service;
    let at = Moment::from_origin(at);
    if let Fault::FailOver(age) = fault {
        let before = at.since_origin().saturating_sub(age);
        runtime.sleep_until(Moment::from_origin(before)).await;
        let copy = service.copy();
        runtime.sleep_until(at).await;
        return service.fail_over_to(copy);
    }
    runtime.sleep_until(at).await;
    match fault {
        Fault::Silent(time) => service.pause(runtime.now() + time),
        Fault::Down(time) => {
            service.set_down(true);
            runtime.sleep(time).await;
            service.set_down(false);
        }
        Fault::QueueLost => service.lose_queue(),
        Fault::EverythingLost => service.lose_everything(),
        Fault::ClockForward(by) => service.step_clock_forward(by),
        Fault::ClockBack(by) => service.step_clock_back(by),
        Fault::StoreClock(by) => {
            around
                .log
                .coverage()
                .note("fault: the store's clock jumped");
            around.store.step_unix(by.into());
        }
        Fault::FailOver(_) => {}
    }
}

fn deaths<S: Ledger>(
    world: &World,
    fate: &Process,
    around: &Arc<Surroundings<S>>,
    slots: &[Arc<Slot<S>>],
) {
    let dying = slots.iter().filter(|slot| slot.plan.killed.is_some());
    let processes = dying.clone().map(|slot| {
        let number = slot.number + RESTARTED;
        (number, world.process(&format!("client {number}")))
    });
    let births = Arc::new(Births {
        processes: Mutex::new(processes.collect()),
        around: Arc::clone(around),
    });
    for slot in dying {
        let (slot, births, process) = (Arc::clone(slot), Arc::clone(&births), fate.clone());
        fate.start(async move {
            let runtime: &dyn Runtime = &process;
            let Some((at, death)) = slot.plan.killed else {
                return;
            };
            runtime.sleep(at).await;
            if slot.has_ended() {
                return;
            }
            if death == Death::ShutDown {
                slot.shut_down().await;
                runtime.sleep(SHUTTING).await;
                has_left_the_queue(&births.around, slot.number);
            }
            slot.die(&births);
        });
    }
}

/// The requests of a client's shutdown have arrived by then.
const SHUTTING: Duration = Duration::from_millis(100);

/// A client that has shut down waits for nothing any more.
fn has_left_the_queue<S: Ledger>(around: &Surroundings<S>, client: u32) {
    let plan = &around.plan;
    if !plan.is_answered() || !plan.stops_nobody() {
        return;
    }
    let places = around.service.left_behind().places;
    let its = |id| around.log.judge().client_of(id) == Some(client);
    if let Some(place) = places.iter().find(|place| its(place.id)) {
        let what = format!(
            "client {client} has shut down, and waits for {}",
            place.resource
        );
        around.log.broke("G8", what);
    }
}

/// An operator looks for leases of the dead after this time, again and again.
const PATIENCE: Duration = Duration::from_secs(1);

/// All faults end. If leases do not end by themselves, an operator ends those of dead clients,
/// because others may wait for them without bound. The operator looks until the last client has
/// ended, because a lease that ends may go to another dead client, who still has a place. After a
/// loss of state the operator ends every lease, because it cannot tell which client has it.
fn calm<S: Ledger>(
    fate: &Process,
    around: &Arc<Surroundings<S>>,
    slots: &[Arc<Slot<S>>],
    operator: &Me<S>,
) {
    let (around, process) = (Arc::clone(around), fate.clone());
    let (slots, operator) = (slots.to_vec(), operator.clone());
    fate.start(async move {
        let runtime: &dyn Runtime = &process;
        runtime.sleep(around.plan.calm).await;
        around.weather.calm_down();
        around.service.set_down(false);
        while around.plan.is_long && slots.iter().any(|slot| !slot.has_ended()) {
            runtime.sleep(PATIENCE).await;
            clear_up(&around, &slots, &operator);
        }
    });
}

fn clear_up<S: Ledger>(around: &Surroundings<S>, slots: &[Arc<Slot<S>>], operator: &Me<S>) {
    for lease in around.service.left_behind().leases {
        let owner = around.log.judge().client_of(lease.holds[0]);
        let lives = |number| slots.iter().any(|slot| slot.me().number() == number);
        if owner.is_some_and(lives) && !around.plan.loses_state() {
            continue;
        }
        let (me, resource) = (operator.clone(), lease.resource);
        operator.process().start(async move {
            if let Err(error) = me.locks().force_release(resource).await {
                me.tell(|| format!("fails as an operator: {error}"));
            }
        });
    }
}
