//! The times that a schedule runs when the clock goes on during a call.

use std::{pin::pin, sync::Arc, time::Duration};

use fenced_jobs::{Jobs, Missed, Schedule, Scheduled};
use fenced_store::{FencedLockError, FencedLocks, FencedStore};
use futures_util::FutureExt;
use jiff::Timestamp;
use lock_core::{InitialToken, Ttl, backend::Runtime, memory::MemoryBackend};
use lock_testing::{ManualClock, Process};
use sqlx::Sqlite;

use crate::{file::SqliteFile, rule::fresh};

const MINUTE: Duration = Duration::from_secs(60);

struct World {
    file: SqliteFile,
    clock: ManualClock,
    process: Process,
    schedule: Schedule,
}

impl World {
    /// A job that is due every five minutes, at the moment when it is due.
    async fn new() -> Self {
        let clock = ManualClock::new();
        let service = MemoryBackend::new(Arc::new(clock.clone()), InitialToken::Clock);
        let process = Process::start(Arc::new(service) as Arc<_>, &clock);
        let world = Self {
            file: fresh().await,
            process,
            schedule: Schedule::new("*/5 * * * *", "UTC").unwrap(),
            clock,
        };
        let next = world.schedule.next(world.now()).unwrap();
        let until = next.duration_since(world.now()).unsigned_abs();
        world.clock.advance(until);
        world
    }

    fn now(&self) -> Timestamp {
        let now = std::time::UNIX_EPOCH + self.clock.unix_time();
        Timestamp::try_from(now).unwrap()
    }

    /// Jobs over one connection to the database.
    async fn jobs(&self) -> FencedLocks<Sqlite> {
        let store = FencedStore::new(self.file.pool_of_one().await);
        FencedLocks::new(self.process.locks().clone(), store)
    }

    fn scheduled(&self, jobs: &FencedLocks<Sqlite>, missed: Missed) -> Scheduled<Sqlite> {
        let long = Ttl::secs(24 * 3600);
        jobs.scheduled("job", &self.schedule)
            .since(self.now() - MINUTE)
            .missed(missed)
            .ttl(long)
    }
}

/// Catches: a time until the next call that is counted from before the work, so that the next run
/// is too late and is skipped.
#[tokio::test]
async fn work_that_takes_long_does_not_cost_the_next_time() {
    let world = World::new().await;
    let jobs = world.jobs().await;
    let missed = Missed::Skip {
        later_than: MINUTE / 2,
    };
    for round in 0..4 {
        let due = world.now();
        let run = world.scheduled(&jobs, missed).run(async |_, _| {
            world.clock.advance(MINUTE);
            Ok::<_, FencedLockError>(())
        });
        let runs = run.await.unwrap();
        let done: Vec<_> = runs.done.iter().map(ToString::to_string).collect();
        assert_eq!(done, [due.to_string()], "round {round}");
        assert_eq!(runs.next_in, 4 * MINUTE);
        world.clock.advance(runs.next_in);
    }
}

/// The database cannot be reached for an hour during the call.
/// Catches: a call that runs the oldest time in place of the newest, or that does not report that
/// another time is due.
#[tokio::test]
async fn after_an_outage_the_newest_time_runs() {
    let world = World::new().await;
    let jobs = world.jobs().await;
    let outage = jobs.store().pool().acquire().await.unwrap();
    let run = world.scheduled(&jobs, Missed::RunNewest);
    let mut run = pin!(run.run(async |_, _| {
        world.clock.advance(6 * MINUTE);
        Ok::<_, FencedLockError>(())
    }));
    assert!((&mut run).now_or_never().is_none());
    world.clock.advance(60 * MINUTE);
    let newest = world.now();
    drop(outage);
    let runs = run.await.unwrap();
    let done: Vec<_> = runs.done.iter().map(ToString::to_string).collect();
    assert_eq!(done, [newest.to_string()]);
    assert_eq!(runs.next_in, Duration::ZERO, "one more has become due");
}
