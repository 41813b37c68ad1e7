//! Jobs that run once per slot.

use std::time::Duration;

use fenced_jobs::{JobOutcome, JobSlots, Jobs, Standing};
use fenced_store::{FenceError, FencedLockError, FencedLocks, FencedTx};
use futures_util::future::join_all;
use lock_core::{ErrorKind, RetryPolicy};
use tokio::sync::Notify;

use crate::rule::{Harness, at_every_await, balance, fresh, service};

const WAIT: Duration = Duration::from_secs(30);

const MONDAY: &str = "2026-11-23T02:00:00Z";
const TUESDAY: &str = "2026-11-24T02:00:00Z";
const WEDNESDAY: &str = "2026-11-25T02:00:00Z";

async fn world<H: Harness>() -> (H, FencedLocks<H::Db>) {
    let world: H = fresh().await;
    let jobs = FencedLocks::new(service("redis"), world.store().clone());
    (world, jobs)
}

/// The work adds 1 to the balance, so the balance is 100 and the number of times that the work was
/// done.
async fn work<H: Harness>(tx: &mut FencedTx<H::Db>) -> Result<i64, FencedLockError> {
    H::add(&mut *tx, 1).await?;
    Ok(H::balance(&mut *tx).await)
}

async fn run<H: Harness>(jobs: &FencedLocks<H::Db>, slot: &str) -> JobOutcome<i64> {
    let once = jobs.once("night", slot).wait(WAIT);
    once.run(work::<H>).await.unwrap()
}

/// A runner loses its lease in the middle of the work, and another runner does all of the work.
async fn is_overtaken<H: Harness>(jobs: &FencedLocks<H::Db>) {
    jobs.locks().force_release("job:night").await.unwrap();
    assert!(matches!(run::<H>(jobs, MONDAY).await, JobOutcome::Ran(..)));
}

pub(crate) async fn a_slot_runs_once<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let JobOutcome::Ran(101, receipt) = run::<H>(&jobs, MONDAY).await else {
        panic!("it was not run before");
    };
    for _ in 0..2 {
        let JobOutcome::Done { token, at } = run::<H>(&jobs, MONDAY).await else {
            panic!("it was done");
        };
        assert_eq!(token, receipt.token());
        let ago = at.elapsed().unwrap_or_default();
        assert!(ago < Duration::from_secs(3600), "{at:?}");
    }
    let other_job = jobs.once("day", MONDAY).run(work::<H>).await.unwrap();
    assert!(matches!(other_job, JobOutcome::Ran(102, _)));
    let text = run::<H>(&jobs, "invoice:7").await;
    assert!(matches!(text, JobOutcome::Ran(103, _)));
    assert_eq!(balance(&world).await, 103);
}

/// The store has neither the work of that runner nor its failure. The control writes outside of the
/// fence, and the work is stored twice.
pub(crate) async fn a_runner_that_is_overtaken_stores_nothing<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let slow = jobs.once("night", MONDAY).steps(async |job| {
        is_overtaken::<H>(&jobs).await;
        job.step(work::<H>).await
    });
    let error = slow.await.unwrap_err();
    assert!(error.is_fenced(), "{error}");
    assert_eq!(balance(&world).await, 101);
    let state = world.store().job_slot("night", MONDAY).await.unwrap();
    assert!(matches!(state.standing, Standing::Done { .. }), "{state:?}");
    assert_eq!((state.attempts, state.last_error), (0, None));

    assert!(jobs.forget_job("night", MONDAY, WAIT).await.unwrap());
    let slow = jobs.once("night", MONDAY).steps(async |_| {
        is_overtaken::<H>(&jobs).await;
        Ok::<_, FencedLockError>(H::add_unfenced(world.store(), 1).await?)
    });
    assert!(slow.await.unwrap_err().is_fenced());
    assert_eq!(balance(&world).await, 103, "101, and twice");
}

pub(crate) async fn a_slot_that_failed_leaves_nothing_and_is_due_later<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let later = RetryPolicy::fixed(Duration::from_secs(600));
    let failing = || {
        let once = jobs.once("night", MONDAY).back_off(later);
        once.run(async |tx| {
            work::<H>(tx).await?;
            Err::<(), FencedLockError>(FenceError::Aborted.into())
        })
    };
    assert!(failing().await.is_err());
    assert_eq!(balance(&world).await, 100);

    let told = failing().await.unwrap();
    let JobOutcome::BackingOff { attempts, retry_in } = told else {
        panic!("{told:?}");
    };
    assert_eq!(attempts, 1);
    assert!(retry_in > Duration::from_secs(250), "{retry_in:?}");
    assert!(retry_in <= Duration::from_secs(600), "{retry_in:?}");
    let state = world.store().job_slot("night", MONDAY).await.unwrap();
    let error = FenceError::Aborted.to_string();
    assert_eq!(state.last_error, Some(error));
    assert!(matches!(state.standing, Standing::BackingOff(_)));

    assert!(jobs.retry_job("night", MONDAY, WAIT).await.unwrap());
    let ran = run::<H>(&jobs, MONDAY).await;
    assert!(matches!(ran, JobOutcome::Ran(101, _)), "{ran:?}");
    let again = jobs.retry_job("night", MONDAY, WAIT).await.unwrap();
    assert!(!again, "it is done");
}

/// Pauses grow with the number of failures, and end without an operator.
pub(crate) async fn a_slot_that_failed_is_due_again_by_itself<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let soon = RetryPolicy::exponential(Duration::from_millis(1));
    for attempts in 1..=3 {
        let failed = loop {
            let once = jobs.once("night", MONDAY).back_off(soon);
            let run = once.run(async |_| Err::<(), FencedLockError>(FenceError::Aborted.into()));
            match run.await {
                Ok(JobOutcome::BackingOff { .. }) => tokio::task::yield_now().await,
                other => break other,
            }
        };
        assert!(failed.is_err(), "{failed:?}");
        let state = world.store().job_slot("night", MONDAY).await.unwrap();
        assert_eq!(state.attempts, attempts);
    }
}

/// Each step is done once, although the first runner ends after two of them.
pub(crate) async fn a_slot_is_taken_over_from_its_last_step<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let last = Notify::new();
    let dies = jobs.once("night", MONDAY).steps(async |job| {
        assert_eq!(job.progress::<i64>()?, None);
        for step in 0..2 {
            assert_eq!(job.idempotency_key(), format!("night/{MONDAY}/{step}"));
            job.step(work::<H>).await?;
        }
        job.step(async |tx| {
            work::<H>(tx).await?;
            last.notify_one();
            std::future::pending::<Result<i64, FencedLockError>>().await
        })
        .await
    });
    tokio::select! {
        ended = dies => panic!("its last step never ends: {ended:?}"),
        () = last.notified() => {}
    }

    let once = jobs.once("night", MONDAY).wait(WAIT);
    let goes_on = once.steps(async |job| {
        assert_eq!(job.committed_steps(), 2);
        assert_eq!(job.progress::<i64>()?, Some(102));
        job.step(work::<H>).await
    });
    let ran = goes_on.await.unwrap();
    assert!(matches!(ran, JobOutcome::Ran(103, _)), "{ran:?}");
    assert_eq!(balance(&world).await, 103);
}

/// A step that fails is rolled back. The steps before it stay, and are not done again.
pub(crate) async fn a_step_that_failed_is_done_again_alone<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let soon = RetryPolicy::fixed(Duration::from_millis(1));
    let mut failures = 0;
    let ran = loop {
        let once = jobs.once("night", MONDAY).back_off(soon);
        let run = once.steps(async |job| {
            while job.committed_steps() < 3 {
                let fails = failures == job.committed_steps();
                failures += u64::from(fails);
                job.step(async |tx| {
                    let done = work::<H>(tx).await?;
                    if fails {
                        return Err(FencedLockError::from(FenceError::Aborted));
                    }
                    Ok(done)
                })
                .await?;
            }
            Ok::<_, FencedLockError>(())
        });
        if let Ok(JobOutcome::Ran((), _)) = run.await {
            break failures;
        }
    };
    assert_eq!((ran, balance(&world).await), (3, 103));
}

pub(crate) async fn old_times_are_forgotten_and_count_as_done<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    for slot in [MONDAY, "invoice:7", TUESDAY] {
        assert!(matches!(run::<H>(&jobs, slot).await, JobOutcome::Ran(..)));
    }
    // Forgetting stops at the newest slot that is done, because later slots are not done.
    for (job, slot, expected) in [
        ("never", "2027-01-01T00:00:00Z", ""),
        ("night", "2027-01-01T00:00:00Z", TUESDAY),
    ] {
        let below = jobs.forget_jobs_below(job, slot, WAIT).await;
        assert_eq!(below.unwrap(), expected);
    }
    let late = run::<H>(&jobs, MONDAY).await;
    assert!(matches!(late, JobOutcome::Forgotten), "{late:?}");
    let text = run::<H>(&jobs, "invoice:7").await;
    assert!(matches!(text, JobOutcome::Done { .. }), "{text:?}");

    // It never goes back, and never past a failed slot.
    let once = jobs.once("night", WEDNESDAY);
    let failed = once.run(async |_| Err::<(), FencedLockError>(FenceError::Aborted.into()));
    assert!(failed.await.is_err());
    let later = run::<H>(&jobs, "2026-11-26T02:00:00Z").await;
    assert!(later.is_done());
    for (slot, expected) in [(MONDAY, TUESDAY), ("2027-01-01T00:00:00Z", WEDNESDAY)] {
        let below = jobs.forget_jobs_below("night", slot, WAIT).await;
        assert_eq!(below.unwrap(), expected);
    }
    let no_time = jobs.forget_jobs_below("night", "invoice:7", WAIT).await;
    assert!(no_time.unwrap_err().to_string().contains("invoice:7"));

    let known = world.store().job_slots(None, 10).await.unwrap();
    let slots: Vec<_> = known.iter().map(|seen| seen.slot.as_str()).collect();
    assert_eq!(slots, [WEDNESDAY, "2026-11-26T02:00:00Z", "invoice:7"]);
    let after = world.store().job_slots(Some(&known[0]), 10).await;
    assert_eq!(after.unwrap().len(), 2);
    assert!(jobs.forget_job("night", "invoice:7", WAIT).await.unwrap());
    let again = run::<H>(&jobs, "invoice:7").await;
    assert!(matches!(again, JobOutcome::Ran(105, _)), "{again:?}");
}

pub(crate) async fn a_job_is_held_by_one_runner<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let once = jobs.once("night", MONDAY);
    let outer = once.run(async |tx| {
        let other = jobs.once("night", TUESDAY).run(work::<H>).await?;
        assert!(matches!(other, JobOutcome::Held), "{other:?}");
        work::<H>(tx).await
    });
    assert!(matches!(outer.await.unwrap(), JobOutcome::Ran(101, _)));
    assert_eq!(balance(&world).await, 101);
    for (job, slot) in [
        ("", MONDAY),
        ("a b", MONDAY),
        ("night", "a b"),
        ("night", ""),
    ] {
        let error = jobs.once(job, slot).run(work::<H>).await.unwrap_err();
        let FencedLockError::Lock(error) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{job:?} {slot:?}");
    }
}

/// The rows of the jobs are neighbours in the table.
pub(crate) async fn other_jobs_do_not_disturb<H: Harness>() {
    const JOBS: usize = 6;
    const SLOTS: usize = 8;
    let (world, jobs) = world::<H>().await;
    let at_once = (0..JOBS).map(async |job| {
        for slot in 0..SLOTS {
            let once = jobs.once(&format!("night-{job}"), slot.to_string());
            let ran = once.run(async |_| Ok::<_, FencedLockError>(())).await;
            assert!(matches!(ran, Ok(JobOutcome::Ran(..))), "{ran:?}");
        }
    });
    join_all(at_once).await;
    let known = world.store().job_slots(None, 1000).await.unwrap();
    assert_eq!(known.len(), JOBS * SLOTS);
}

pub(crate) async fn a_job_can_be_dropped_at_every_await<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let mut slots = 0;
    at_every_await(async |at| {
        slots += 1;
        let slot = format!("slot-{slots}");
        let before = balance(&world).await;
        let dropped = at.poll(jobs.once("night", slot.as_str()).run(work::<H>));
        let ended = dropped.await.is_some();
        assert!(run::<H>(&jobs, &slot).await.is_done(), "dropped {at:?}");
        assert_eq!(balance(&world).await, before + 1, "dropped {at:?}");
        ended
    })
    .await;
}

pub(crate) async fn steps_can_be_dropped_at_every_await<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let mut slots = 0;
    let steps = async |slot: &str| {
        let once = jobs.once("night", slot).wait(WAIT);
        once.steps(async |job| {
            while job.committed_steps() < 2 {
                job.step(work::<H>).await?;
            }
            Ok::<_, FencedLockError>(())
        })
        .await
        .unwrap()
    };
    at_every_await(async |at| {
        slots += 1;
        let slot = format!("slot-{slots}");
        let before = balance(&world).await;
        let ended = at.poll(steps(&slot)).await.is_some();
        assert!(steps(&slot).await.is_done(), "dropped {at:?}");
        assert_eq!(balance(&world).await, before + 2, "dropped {at:?}");
        ended
    })
    .await;
}

/// The commit of a step may have happened. Then no other step begins in that run, whatever the
/// caller does.
pub(crate) async fn a_step_with_an_unknown_outcome_is_followed_by_none<H: Harness>() {
    let (world, jobs) = world::<H>().await;
    let once = |slot: &str| jobs.once("night", slot).wait(WAIT);
    let (mut slots, mut doubts) = (0, 0);
    // A commit that is answered at once has no await.
    while doubts == 0 && slots < 1000 {
        at_every_await(async |at| {
            slots += 1;
            let slot = format!("slot-{slots}");
            let before = balance(&world).await;
            let mut ended = false;
            let run = once(&slot).steps(async |job| {
                ended = at.poll(job.step(work::<H>)).await.is_some();
                if job.committed_steps() == 0 {
                    job.step(work::<H>).await?;
                }
                Ok::<_, FencedLockError>(())
            });
            let run = run.await;
            let is_unknown = |error| matches!(error, &FenceError::CommitUnknown { .. });
            if let Err(FencedLockError::Store(error)) = &run {
                doubts += usize::from(is_unknown(error));
            }
            // The slot is due at once, because a step that may have worked is no failure.
            let again = once(&slot).steps(async |job| {
                if job.committed_steps() == 0 {
                    job.step(work::<H>).await?;
                }
                Ok::<_, FencedLockError>(())
            });
            let again = again.await.unwrap();
            assert!(again.is_done(), "dropped {at:?}: {run:?}, {again:?}");
            assert_eq!(balance(&world).await, before + 1, "dropped {at:?}: {run:?}");
            ended
        })
        .await;
    }
    assert!(doubts > 0, "none was dropped in its commit");
}
