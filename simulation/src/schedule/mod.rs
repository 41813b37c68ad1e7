//! Runs one schedule: builds its world, lets its clients work, and looks at what is left.
//!
//! `weather.rs` decides about messages, `trouble.rs` about outages and deaths, `log.rs` hears
//! everything, and `leftovers.rs` looks at the end.

mod leftovers;
mod log;
mod sqlite;
mod trouble;
mod weather;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fenced_store::Memory;
use lock_core::backend::{Moment, Record, support::lock};
use sqlx::Sqlite;
use tokio::sync::oneshot;

pub(crate) use self::{log::Log, weather::Weather};
use crate::{
    clients::{Me, Surroundings, work},
    coverage::{Coverage, PAUSED},
    edge::Edge,
    history::History,
    judge::{Broken, Judge},
    plan::{self, Plan},
    service::{Event, Service, Settings},
    store::{Ledger, Watch},
    world::{Line, Process, Ran, World, draw},
};

/// The result of a schedule.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The first promise that was broken.
    pub broken: Option<Broken>,
    /// How often each situation came up.
    pub coverage: Coverage,
    /// Two runs with the same digest were the same.
    pub digest: u64,
    /// The lines of its trace, if lines were kept.
    pub lines: Vec<Line>,
    /// The events for pictures, if lines were kept.
    pub(crate) history: History,
    /// Whether the same clients without fences have lost a write.
    pub unfenced_lost: bool,
    /// Whether the lock service has kept its state and its clock.
    pub is_sound: bool,
    /// Whether a process was stopped for longer than its lease.
    pub is_paused: bool,
    /// How many writes the store has refused.
    pub refused: u64,
    /// How many leases ran out.
    pub takeovers: u64,
}

/// Every schedule is over by then, because every piece of work has a bound.
const LIMIT: Duration = Duration::from_secs(600);

/// No schedule needs so many polls.
const MOST_POLLS: u64 = 400_000;

/// The number of the operator who clears up after dead clients.
pub(crate) const OPERATOR: u32 = 900;

/// The number of a client's second process is greater by this.
pub(crate) const RESTARTED: u32 = 16;

/// A client, whose process may be killed and followed by another one.
struct Slot<S: Ledger> {
    number: u32,
    plan: plan::Client,
    /// The process that lives.
    me: Mutex<Me<S>>,
    /// How many of its works have begun.
    begun: AtomicUsize,
    /// Whether all of them have ended.
    has_ended: AtomicUsize,
}

/// Whether the schedule of a seed runs over SQLite: every hundredth does.
#[must_use]
pub const fn is_over_sqlite(seed: u64) -> bool {
    draw(seed, OVER_SQLITE, 0).is_multiple_of(100)
}

/// The stream of the draws for that.
const OVER_SQLITE: u64 = 2;

/// Runs the schedule of a seed.
///
/// # Panics
/// If no Tokio runtime or no database can be made.
#[must_use]
pub fn run_seed(seed: u64) -> Report {
    let plan = plan::drawn_plan(seed);
    match is_over_sqlite(seed) {
        true => run_over_sqlite(&plan.shortened(), false),
        false => run(&plan, false),
    }
}

/// Runs a plan over the store in memory. Lines are kept on request.
///
/// # Panics
/// If no Tokio runtime can be made.
#[must_use]
pub fn run(plan: &Plan, keeps_lines: bool) -> Report {
    run_under(plan, keeps_lines, Promises::Ours)
}

/// The promises that a schedule is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "only tests choose")]
pub enum Promises {
    /// All that we make.
    Ours,
    /// Also a wrong promise, which tests of the simulator break: no lease runs out.
    AndMadeUp,
}

/// As [`run`], but judged by these promises.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn run_under(plan: &Plan, keeps_lines: bool, promises: Promises) -> Report {
    let world = World::new(plan.seed, plan.order).expect("a Tokio runtime without drivers");
    if keeps_lines {
        world.trace();
    }
    let log = log_of(&world, Judge::new(plan), keeps_lines, promises);
    let around = {
        let _inside = world.enter();
        surroundings::<Memory>(&world, plan, log, Memory::clone)
    };
    let world = over(&around, world);
    around.log.end();
    report(&world, &around)
}

/// Runs a plan over a database of SQLite, which works on threads of its own: the draws are those
/// of the plan, but the order of events differs from run to run. It is a file, because each
/// process has connections of its own, which end with it.
///
/// # Panics
/// If no Tokio runtime or no database can be made.
#[must_use]
pub fn run_over_sqlite(plan: &Plan, keeps_lines: bool) -> Report {
    let world = World::with_io(plan.seed, plan.order).expect("a Tokio runtime");
    if keeps_lines {
        world.trace();
    }
    let log = log_of(&world, Judge::blind(plan), keeps_lines, Promises::Ours);
    let folder = tempfile::tempdir().expect("a folder for the database");
    let options = sqlite::options(folder.path());
    let prepared = world.block_on(sqlite::prepare(&options));
    prepared.expect("a database that is new");
    let around = {
        let _inside = world.enter();
        surroundings::<Sqlite>(&world, plan, log, |_| options.clone())
    };
    let world = over(&around, world);
    let rows = world.block_on(sqlite::rows(&options));
    around
        .log
        .judge_rows(&rows.expect("the ledger can be read"));
    report(&world, &around)
}

/// Runs the clients to their end.
fn over<S: Ledger>(around: &Arc<Surroundings<S>>, world: World) -> World {
    let (inside, record) = (world.enter(), Record::begin());
    let slots: Vec<_> = (0_u32..)
        .zip(&around.plan.clients)
        .map(|(number, client)| Slot::begin(&world, around, number, client))
        .collect();
    let operator = me(&world, around, OPERATOR);
    trouble::begin(&world, around, &slots, &operator);
    drop(inside);

    let have_ended = || slots.iter().all(|slot| slot.has_ended());
    // Where steps of the store take real time, the clock runs ahead meanwhile.
    let limit = if S::IS_SEEN { LIMIT } else { 20 * LIMIT };
    let ran = world.run_until_so(Moment::from_origin(limit), MOST_POLLS, have_ended);
    if ran == Ran::TooManyPolls {
        around
            .log
            .broke("bounded-wait", "the schedule does not end".to_owned());
    } else {
        leftovers::judge(&world, around, &slots);
        leftovers::go_on(&world, around, &operator);
        leftovers::shut_down(&world, around, slots, operator);
    }
    around.log.coverage().decided(record.end());
    world
}

fn log_of(world: &World, judge: Judge, keeps_history: bool, promises: Promises) -> Arc<Log> {
    let process = world.process("log");
    Arc::new(Log::new(process, judge, keeps_history, promises))
}

fn surroundings<S: Ledger>(
    world: &World,
    plan: &Plan,
    log: Arc<Log>,
    data: impl FnOnce(&Memory) -> S::Data,
) -> Arc<Surroundings<S>> {
    let (network, store) = (world.process("network"), world.process("store"));
    let memory = Memory::new(Arc::new(store.clone()));
    let weather = Arc::new(Weather::of(plan));
    let watch = Arc::new(Watch::new(&memory, Arc::clone(&log)));
    let edge = Edge::new(
        world.process("edge"),
        &network,
        (&weather, &watch, &log),
        (&memory, plan.lock_timeout),
    );
    let heard = Arc::clone(&log);
    let observer = move |_: Moment, event: Event| heard.served(&event);
    let fates = Arc::clone(&weather);
    let service = Service::new(
        Settings::new(plan.variant),
        Arc::new(network.clone()),
        move |client, leg, number| fates.to_service(client, leg, number),
        observer,
    );
    Arc::new(Surroundings {
        plan: plan.clone(),
        service,
        network,
        data: data(&memory),
        store,
        memory,
        weather,
        watch,
        edge,
        log,
    })
}

fn me<S: Ledger>(world: &World, around: &Arc<Surroundings<S>>, number: u32) -> Me<S> {
    let process = world.process(&format!("client {number}"));
    Me::new(number, process, around).expect("the settings of a manager are valid")
}

fn report<S: Ledger>(world: &World, around: &Surroundings<S>) -> Report {
    if let Some(panicked) = world.panics().first() {
        let what = format!("{}: {}", panicked.process, panicked.message);
        around.log.broke("no panic", what);
    }
    let lines = world.take_lines();
    let coverage = around.log.coverage().clone();
    let mut judge = around.log.judge();
    Report {
        broken: judge.broken.take(),
        digest: world.digest(),
        lines,
        history: around.log.take_history(),
        unfenced_lost: judge.twin.has_lost(),
        is_sound: around.plan.service_is_sound(),
        is_paused: coverage.of(PAUSED) > 0,
        coverage,
        refused: judge.rows.refused,
        takeovers: judge.leases.takeovers,
    }
}

impl<S: Ledger> Slot<S> {
    fn begin(
        world: &World,
        around: &Arc<Surroundings<S>>,
        number: u32,
        plan: &plan::Client,
    ) -> Arc<Self> {
        let me = me(world, around, number);
        for (poll, pause) in &plan.pauses {
            me.process().pause_at_poll((*poll).into(), *pause);
        }
        let slot = Arc::new(Self {
            number,
            plan: plan.clone(),
            me: Mutex::new(me.clone()),
            begun: AtomicUsize::new(0),
            has_ended: AtomicUsize::new(0),
        });
        slot.work_as(me);
        slot
    }

    /// The process that lives.
    fn me(&self) -> Me<S> {
        lock(&self.me).clone()
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed) == 1
    }

    /// Has a process do all works that have not begun.
    fn work_as(self: &Arc<Self>, me: Me<S>) {
        let slot = Arc::clone(self);
        let process = me.process().clone();
        process.start(async move {
            loop {
                let next = slot.begun.fetch_add(1, Ordering::Relaxed);
                let Some(plan) = slot.plan.works.get(next).copied() else {
                    break;
                };
                me.think(plan.after).await;
                let id = 100 * slot.number + u32::try_from(next).unwrap_or(99);
                work(&me, id, plan).await;
            }
            slot.has_ended.store(1, Ordering::Relaxed);
        });
    }

    /// Shuts the manager of the process down, whatever it is doing.
    async fn shut_down(&self) {
        let me = self.me();
        let (down, is_down) = oneshot::channel();
        let process = me.process().clone();
        process.start(async move {
            me.locks().shutdown().await;
            down.send(()).unwrap_or_default();
        });
        // The process may have ended meanwhile.
        drop(is_down.await);
    }

    /// Ends the process. Another one goes on with the next piece of work.
    fn die(self: &Arc<Self>, world: &Arc<Births<S>>) {
        self.me().process().kill();
        let me = world.another(self.number + RESTARTED);
        me.tell_of(|| format!("does the rest of client {}", self.number));
        *lock(&self.me) = me.clone();
        self.work_as(me);
    }
}

/// Makes processes while the world runs.
struct Births<S: Ledger> {
    /// By their numbers.
    processes: Mutex<BTreeMap<u32, Process>>,
    around: Arc<Surroundings<S>>,
}

impl<S: Ledger> Births<S> {
    fn another(&self, number: u32) -> Me<S> {
        let process = lock(&self.processes).remove(&number);
        let process = process.expect("there is one for each death");
        Me::new(number, process, &self.around).expect("the settings of a manager are valid")
    }
}
