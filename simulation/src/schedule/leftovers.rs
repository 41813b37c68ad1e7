//! The state after the last piece of work: nothing is left of clients that live.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fenced_store::FencedLockError;
use lock_core::backend::{Moment, Runtime};

use super::Slot;
use crate::{
    clients::{Me, Surroundings},
    store::Ledger,
    world::{Process, World},
};

/// All messages have arrived, and all clean-ups have ended by then.
const AFTERWARDS: Duration = Duration::from_secs(120);

/// How long an operator waits for a lease.
const PATIENCE: Duration = Duration::from_secs(2);

/// No schedule needs so many polls to end.
const MOST_POLLS: u64 = 100_000;

/// Judges the quiet point after the last piece of work, before any long lease has ended.
pub(super) fn judge<S: Ledger>(world: &World, around: &Surroundings<S>, slots: &[Arc<Slot<S>>]) {
    let log = &around.log;
    if !around.plan.is_long {
        // A lease that could not be given back in an outage ends by itself.
        let network = around.network.clone();
        around.network.start(async move {
            let runtime: &dyn Runtime = &network;
            runtime.sleep(AFTERWARDS).await;
        });
        let _ran = world.run_for(2 * AFTERWARDS, MOST_POLLS);
    }
    for slot in slots.iter().filter(|slot| !slot.has_ended()) {
        log.broke(
            "bounded-wait",
            format!("client {} still works", slot.number),
        );
    }
    if around.memory.open_transactions() > 0 {
        let what = format!(
            "{} transactions are open",
            around.memory.open_transactions()
        );
        log.broke("store-dropped", what);
    }
    if around.service.under_way() > 0 {
        let what = format!("{} messages are under way", around.service.under_way());
        log.broke("the simulator", what);
    }
    let left = around.service.left_behind();
    let of_living = |attempt| {
        let client = log.judge().client_of(attempt);
        let client = client.filter(|_| !around.plan.loses_state());
        client.filter(|number| slots.iter().any(|slot| slot.me().number() == *number))
    };
    for lease in &left.leases {
        if let Some(client) = lease.holds.iter().find_map(|hold| of_living(*hold)) {
            let what = format!(
                "client {client} has left {} with {}",
                lease.resource, lease.token
            );
            log.broke("G8", what);
        }
    }
    for place in &left.places {
        if let Some(client) = of_living(place.id) {
            log.broke(
                "G8",
                format!("client {client} still waits for {}", place.resource),
            );
        }
    }
    for me in slots.iter().map(|slot| slot.me()) {
        let held = me.locks().stats().held;
        if held > 0 {
            log.broke("G8", format!("client {} counts {held} leases", me.number()));
        }
    }
    world.note(log.judge().rows.refused);
}

/// A lock service that has lost its state or its time is lifted above the marks: in calm weather
/// each resource can be acquired again.
pub(super) fn go_on<S: Ledger>(world: &World, around: &Surroundings<S>, operator: &Me<S>) {
    if around.plan.service_is_sound() || !S::IS_SEEN {
        return;
    }
    let names = around.log.judge().rows.marked();
    let (me, calm) = (operator.clone(), Moment::from_origin(around.plan.calm));
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    around.weather.calm_down();
    operator.process().start(async move {
        me.runtime().sleep_until(calm).await;
        for name in names {
            // Leases from before the loss may go on: no client knows of them.
            let acquired = me.fenced().acquire(name.as_str()).wait(PATIENCE).await;
            let begun = match acquired {
                Ok(guard) => guard.begin().await.map(drop),
                Err(FencedLockError::Store(error)) => Err(error),
                Err(_) => continue,
            };
            if let Err(error) = begun {
                let what = format!("{name} cannot be acquired again: {error}");
                me.broke("both-old-tokens", what);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    let _ran = world.run_until_so(world.now() + 2 * AFTERWARDS, MOST_POLLS, || {
        is_over.load(Ordering::Relaxed)
    });
}

/// Ends all managers: no task of theirs is left.
pub(super) fn shut_down<S: Ledger>(
    world: &World,
    around: &Surroundings<S>,
    slots: Vec<Arc<Slot<S>>>,
    operator: Me<S>,
) {
    let living: Vec<_> = slots
        .iter()
        .map(|slot| slot.me())
        .chain([operator])
        .collect();
    let processes: Vec<_> = living.iter().map(|me| me.process().clone()).collect();
    for me in living {
        let process = me.process().clone();
        process.start(async move { me.locks().shutdown().await });
    }
    drop(slots);
    let is_empty = || {
        let counts = processes.iter().map(Process::counts);
        counts
            .map(|counts| counts.tasks + counts.sleepers)
            .sum::<u64>()
            == 0
    };
    let _ran = world.run_until_so(world.now() + AFTERWARDS, MOST_POLLS, is_empty);
    for process in processes {
        let counts = process.counts();
        if counts.tasks > 0 || counts.sleepers > 0 {
            let what = format!("{} is shut down and has {counts:?}", process.name());
            around.log.broke("G8", what);
        }
    }
}
