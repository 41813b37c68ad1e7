use std::time::Duration;

use proptest::{
    collection::vec,
    option::weighted,
    prelude::*,
    sample::{select, subsequence},
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::{Client, Death, Fault, Net, PLACES, Plan, Task, Work};
use crate::{
    service::Variant,
    world::{Order, draw},
};

/// The plan of a seed, with the smaller plans that proptest can make of it.
///
/// # Panics
/// Never: no strategy rejects a value.
#[must_use]
pub fn drawn(seed: u64) -> impl ValueTree<Value = Plan> {
    let mut key = [0; 32];
    for (number, bytes) in key.chunks_mut(8).enumerate() {
        bytes.copy_from_slice(&draw(seed, KEYS, number as u64).to_le_bytes());
    }
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let plan = plans(seed).new_tree(&mut runner);
    plan.expect("no strategy rejects a value")
}

/// The plan of a seed.
///
/// # Panics
/// Never.
#[must_use]
pub fn drawn_plan(seed: u64) -> Plan {
    drawn(seed).current()
}

/// All plans whose draws have this key.
pub fn plans(seed: u64) -> impl Strategy<Value = Plan> {
    swarms().prop_flat_map(move |swarm| of_swarm(seed, &swarm))
}

/// All tasks. The first tasks are those of most users.
const TASKS: [Task; 13] = [
    Task::Section,
    Task::Try,
    Task::Lease,
    Task::Given,
    Task::Owner,
    Task::Both,
    Task::Together,
    Task::Once,
    Task::Steps,
    Task::Lead,
    Task::Edge,
    Task::Force,
    Task::Inspect,
];

/// The stream of the keys of plans.
const KEYS: u64 = 1;

/// Which kinds of faults there are in a schedule. If every schedule had all kinds, some would hide:
/// a rare fault needs a schedule that other faults do not end (Groce and others, "Swarm Testing",
/// 2012).
#[derive(Clone, Debug)]
struct Swarm {
    ttl: Duration,
    is_long: bool,
    loses: bool,
    copies: bool,
    delays: bool,
    pauses: bool,
    kills: bool,
    drops: bool,
    outages: bool,
    losses: bool,
    /// Which tasks there are: few, so that clients meet.
    tasks: Vec<Task>,
}

fn swarms() -> impl Strategy<Value = Swarm> {
    let lease = (select(vec![1_000_u64, 1_500, 2_500, 4_000]), any::<bool>());
    let net = (any::<bool>(), any::<bool>(), any::<bool>());
    let clients = (any::<bool>(), weighted_bool(0.3), any::<bool>());
    let service = (weighted_bool(0.35), weighted_bool(0.15));
    (lease, net, clients, service, tasks()).prop_map(
        |((ttl, is_long), (loses, copies, delays), (pauses, kills, drops), service, tasks)| Swarm {
            ttl: Duration::from_millis(ttl),
            is_long,
            loses,
            copies,
            delays,
            pauses,
            kills,
            drops,
            outages: service.0,
            losses: service.1,
            tasks,
        },
    )
}

/// A few of the tasks, so that clients meet. Every third schedule has the tasks of most users.
fn tasks() -> impl Strategy<Value = Vec<Task>> {
    prop_oneof![
        1 => subsequence(vec![Task::Section, Task::Try, Task::Both, Task::Lease], 1..=3),
        2 => subsequence(TASKS.to_vec(), 1..=4),
    ]
}

fn of_swarm(seed: u64, swarm: &Swarm) -> impl Strategy<Value = Plan> + use<> {
    let (is_long, has_faults) = (swarm.is_long, swarm.outages || swarm.losses);
    let ttl = match is_long {
        true => Duration::from_secs(3_600),
        false => swarm.ttl,
    };
    let order = prop_oneof![
        Just(Order::Fifo),
        Just(Order::Uniform),
        (2..4_u32).prop_map(|depth| Order::Pct { depth }),
    ];
    let variant = select(vec![
        Variant::Pushes,
        Variant::Offers,
        Variant::Polls,
        Variant::Hints,
        Variant::Unqueued,
    ]);
    let lock_timeout = select(vec![300_u64, 2_000]).prop_map(Duration::from_millis);
    let clients = vec(clients(swarm), 2..=6);
    let faults = vec((millis(0, 6_000), faults(swarm)), 0..=3);
    (
        order,
        variant,
        (nets(swarm), nets(swarm)),
        lock_timeout,
        clients,
        faults,
    )
        .prop_map(
            move |(order, variant, (to_service, to_store), lock_timeout, clients, faults)| Plan {
                seed,
                order,
                variant,
                ttl,
                is_long,
                to_service,
                to_store,
                lock_timeout,
                clients,
                faults: if has_faults { faults } else { Vec::new() },
                calm: Duration::from_secs(12),
            },
        )
}

fn nets(swarm: &Swarm) -> impl Strategy<Value = Net> + use<> {
    let late_by = 2 * swarm.ttl;
    let thousandths = |is_on, most| match is_on {
        true => 0..=most,
        false => 0..=0_u16,
    };
    (
        millis(0, 30),
        thousandths(swarm.loses, 250),
        thousandths(swarm.copies, 250),
        thousandths(swarm.delays, 120),
    )
        .prop_map(move |(delay, lost, copied, late)| Net {
            delay,
            lost,
            copied,
            late,
            late_by,
        })
}

fn clients(swarm: &Swarm) -> impl Strategy<Value = Client> + use<> {
    let pause = (
        1..120_u16,
        prop_oneof![
            1 => millis(1, 300),
            2 => millis(swarm.ttl_ms(), 3 * swarm.ttl_ms()),
        ],
    );
    let pauses = vec(pause, 0..=if swarm.pauses { 4 } else { 0 });
    let death = prop_oneof![2 => Just(Death::Killed), 1 => Just(Death::ShutDown)];
    let killed = sometimes(swarm.kills, 0.5, (millis(1, 5_000), death));
    (vec(works(swarm), 1..=10), pauses, killed).prop_map(|(works, pauses, killed)| Client {
        works,
        pauses,
        killed,
    })
}

fn works(swarm: &Swarm) -> impl Strategy<Value = Work> + use<> {
    let ttl = swarm.ttl_ms();
    let after = prop_oneof![3 => millis(0, 40), 1 => millis(0, 600)];
    let on = prop_oneof![2 => 0..=0_u8, 1 => 0..=1_u8];
    let what = (select(swarm.tasks.clone()), on, any::<u8>());
    let takes = prop_oneof![
        4 => millis(0, 60),
        2 => millis(0, ttl),
        1 => millis(ttl, 2 * ttl),
    ];
    let wait = weighted(0.6, prop_oneof![1 => millis(0, 0), 3 => millis(1, 4 * ttl)]);
    let dropped = sometimes(swarm.drops, 0.35, (0..14_u8, any::<bool>()));
    let pause = prop_oneof![
        1 => millis(1, ttl),
        1 => millis(ttl - 40, ttl + 40),
        2 => millis(ttl, 3 * ttl),
    ];
    let stopped = sometimes(swarm.pauses, 0.45, (0..PLACES, pause));
    (after, what, takes, wait, dropped, stopped).prop_map(
        |(after, (task, on, choice), takes, wait, dropped, stopped)| Work {
            after,
            task,
            on,
            takes,
            wait,
            dropped,
            stopped,
            choice,
        },
    )
}

fn faults(swarm: &Swarm) -> BoxedStrategy<Fault> {
    let ttl = swarm.ttl_ms();
    let outage = prop_oneof![
        millis(1, 3_000).prop_map(Fault::Silent),
        millis(1, 3_000).prop_map(Fault::Down),
        Just(Fault::QueueLost),
        (-20_000..20_000_i32).prop_map(Fault::StoreClock),
    ];
    let loss = prop_oneof![
        Just(Fault::EverythingLost),
        millis(1, 1_000).prop_map(Fault::FailOver),
        millis(1, 2 * ttl).prop_map(Fault::ClockForward),
        millis(1, 2 * ttl).prop_map(Fault::ClockBack),
    ];
    match (swarm.outages, swarm.losses) {
        (true, true) => prop_oneof![outage, loss].boxed(),
        (_, true) => loss.boxed(),
        (_, false) => outage.boxed(),
    }
}

impl Swarm {
    fn ttl_ms(&self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A value with this probability, if there are such values in the schedule.
fn sometimes<S>(is_on: bool, probability: f64, value: S) -> BoxedStrategy<Option<S::Value>>
where
    S: Strategy + 'static,
    S::Value: Clone + 'static,
{
    match is_on {
        true => weighted(probability, value).boxed(),
        false => Just(None).boxed(),
    }
}

fn millis(least: u64, most: u64) -> impl Strategy<Value = Duration> + Clone {
    (least..=most).prop_map(Duration::from_millis)
}

fn weighted_bool(probability: f64) -> impl Strategy<Value = bool> {
    prop::bool::weighted(probability)
}
