//! Jobs that run by a schedule.

use std::time::Duration;

use fenced_jobs::{JobSlots, Jobs, Missed, Schedule, ScheduledRuns, Slot, Standing};
use fenced_store::{FenceError, FencedLockError, FencedLocks, FencedTx};
use jiff::{SignedDuration, Timestamp};
use lock_core::RetryPolicy;

use crate::rule::{Harness, balance, fresh, service};

const ALL: Missed = Missed::RunAll { at_most: 4 };

/// A nightly job with its present time, and the slots that were done, in order.
struct Nightly<H: Harness> {
    world: H,
    jobs: FencedLocks<H::Db>,
    schedule: Schedule,
    now: Timestamp,
    done: Vec<Slot>,
}

impl<H: Harness> Nightly<H> {
    async fn new() -> Self {
        let world: H = fresh().await;
        Self {
            jobs: FencedLocks::new(service("redis"), world.store().clone()),
            world,
            schedule: Schedule::new("0 * * * *", "UTC").unwrap(),
            now: Timestamp::now(),
            done: Vec::new(),
        }
    }

    fn ago(&self, hours: i64) -> Timestamp {
        self.now - SignedDuration::from_hours(hours)
    }

    /// The slots that have become due since this time.
    fn due(&self, since: Timestamp) -> Vec<Slot> {
        self.schedule.due_since(&since.into(), self.now).collect()
    }

    /// Runs the job. The work fails for this slot.
    async fn run(
        &mut self,
        missed: Missed,
        since: Option<Timestamp>,
        fails: Option<&Slot>,
    ) -> Result<ScheduledRuns, FencedLockError> {
        let mut scheduled = self.jobs.scheduled("hourly", &self.schedule).missed(missed);
        scheduled = scheduled.back_off(RetryPolicy::fixed(Duration::from_secs(600)));
        if let Some(since) = since {
            scheduled = scheduled.since(since);
        }
        let runs = scheduled.run(async |slot: &Slot, tx: &mut FencedTx<H::Db>| {
            H::add(&mut *tx, 1).await?;
            if Some(slot) == fails {
                return Err(FencedLockError::from(FenceError::Aborted));
            }
            Ok(())
        });
        let runs = runs.await?;
        self.done.extend(runs.done.iter().cloned());
        Ok(runs)
    }
}

pub(crate) async fn missed_times_run_in_order_and_each_once<H: Harness>() {
    let mut nightly = Nightly::<H>::new().await;
    let since = nightly.ago(10);
    let due = nightly.due(since);
    for _ in 0..2 {
        let runs = nightly.run(ALL, Some(since), None).await.unwrap();
        assert_eq!((runs.done.len(), runs.next_in), (4, Duration::ZERO));
    }
    nightly.run(ALL, Some(since), None).await.unwrap();
    let nothing = nightly.run(ALL, Some(since), None).await.unwrap();
    assert!(nothing.next_in > Duration::ZERO && nothing.next_in <= Duration::from_secs(3600));
    // An hour may have ended meanwhile, which adds a slot.
    assert_eq!(nightly.done[..due.len()], due);
    let times = i64::try_from(nightly.done.len()).unwrap();
    assert_eq!(balance(&nightly.world).await, 100 + times);
}

/// The holder of the job's lease may die, so the next look comes soon.
pub(crate) async fn a_schedule_that_is_held_is_looked_at_again_soon<H: Harness>() {
    let mut nightly = Nightly::<H>::new().await;
    let locks = nightly.jobs.locks().clone();
    let held = locks.acquire("job:hourly").await.unwrap();
    let since = Some(nightly.ago(10));
    let runs = nightly.run(ALL, since, None).await.unwrap();
    assert!(runs.is_held && runs.done.is_empty(), "{runs:?}");
    assert!(runs.next_in <= Duration::from_secs(10), "{runs:?}");
    held.release().await.unwrap();
    assert_eq!(nightly.run(ALL, since, None).await.unwrap().done.len(), 4);
}

/// Later times wait for a failed time, and do not run before it.
pub(crate) async fn a_time_that_failed_keeps_those_after_it_waiting<H: Harness>() {
    let mut nightly = Nightly::<H>::new().await;
    let since = nightly.ago(10);
    let due = nightly.due(since);
    let failed = nightly.run(ALL, Some(since), Some(&due[1])).await;
    assert!(failed.is_err());
    let held_up = nightly.run(ALL, Some(since), None).await.unwrap();
    assert!(held_up.done.is_empty(), "{held_up:?}");
    assert!(held_up.next_in > Duration::from_secs(250), "{held_up:?}");
    assert_eq!(balance(&nightly.world).await, 101);

    let (slot, wait) = (due[1].as_str(), Duration::from_secs(30));
    assert!(nightly.jobs.retry_job("hourly", slot, wait).await.unwrap());
    let runs = nightly.run(ALL, Some(since), None).await.unwrap();
    assert_eq!(runs.done, due[1..5]);
}

pub(crate) async fn missed_times_are_passed_over<H: Harness>() {
    let mut nightly = Nightly::<H>::new().await;
    let since = nightly.ago(10);
    let newest = nightly.due(since).pop().unwrap();
    let runs = nightly.run(Missed::RunNewest, Some(since), None).await;
    assert!(runs.unwrap().done[0] >= newest);
    // The other times count as done, whatever a later call asks for.
    let runs = nightly.run(ALL, Some(since), None).await.unwrap();
    assert!(runs.done.len() <= 1, "{runs:?}");

    // A failed time counts as done, too.
    let mut nightly = Nightly::<H>::new().await;
    let due = nightly.due(since);
    assert!(nightly.run(ALL, Some(since), Some(&due[0])).await.is_err());
    let runs = nightly.run(Missed::RunNewest, Some(since), None).await;
    assert!(runs.unwrap().done[0] >= newest);
    let state = nightly.world.store().job_slot("hourly", &due[0]).await;
    assert_eq!(state.unwrap().standing, Standing::Forgotten);

    let mut nightly = Nightly::<H>::new().await;
    let later_than = Duration::from_millis(1);
    let runs = nightly
        .run(Missed::Skip { later_than }, Some(since), None)
        .await;
    assert!(runs.unwrap().done.is_empty(), "it was due longer ago");
    let later_than = Duration::from_secs(3601);
    let runs = nightly
        .run(Missed::Skip { later_than }, Some(since), None)
        .await;
    assert_eq!(runs.unwrap().done.len(), 1);
}

pub(crate) async fn a_new_schedule_begins_now<H: Harness>() {
    let mut nightly = Nightly::<H>::new().await;
    let runs = nightly.run(ALL, None, None).await.unwrap();
    assert!(runs.done.is_empty(), "{runs:?}");
    let forgotten = nightly.jobs.once("hourly", Slot::from(nightly.ago(1)));
    let forgotten = forgotten.run(async |_| Ok::<_, FencedLockError>(())).await;
    assert!(forgotten.unwrap().is_done(), "it is before the beginning");
    assert_eq!(balance(&nightly.world).await, 100);
}
