//! Jobs that run once for each slot.

use fenced_jobs::{Job, JobOutcome, Jobs, Once};
use fenced_store::{FenceError, FencedLockError, FencedTx};
use lock_core::ResourceName;

use super::{Me, Worked, me::named};
use crate::{
    judge::act::{Act, How, Row},
    plan::Work,
    store::Ledger,
};

/// How many steps a job in steps has.
const STEPS: u64 = 3;

/// Runs a job for a slot in one transaction.
pub(super) async fn once<S: Ledger>(me: &Me<S>, plan: Work) -> Worked {
    let (once, row, resource) = prepared(me, "once", plan);
    let (fails, mut began) = (plan.choice & 24 == 24, false);
    let outcome = once
        .run(async |tx| {
            began = true;
            let write = me.new_write();
            me.at_place(1, plan).await;
            me.write(tx, &row, &resource, write, plan.takes).await?;
            me.at_place(2, plan).await;
            if fails {
                return Err(FencedLockError::from(sqlx::Error::RowNotFound));
            }
            me.writes(write, tx.sequencer().token().get());
            Ok(())
        })
        .await?;
    Ok(ended(me, row, began, &outcome))
}

/// Runs a job for a slot in steps.
pub(super) async fn steps<S: Ledger>(me: &Me<S>, plan: Work) -> Worked {
    let (once, row, resource) = prepared(me, "steps", plan);
    let (fails, mut began) = (plan.choice & 24 == 24, false);
    let outcome = once
        .steps(async |job| {
            began = true;
            if (1..STEPS).contains(&job.committed_steps()) {
                me.saw("takeover between steps");
            }
            while job.committed_steps() < STEPS {
                let number = job.committed_steps() + 1;
                if number == 2 {
                    me.at_place(1, plan).await;
                    if fails {
                        return Err(FencedLockError::from(sqlx::Error::RowNotFound));
                    }
                }
                let made = step(me, job, (&row, &resource), number, plan).await;
                if let Err(error) = made {
                    if plan.choice & 4 == 4 && is_unknown(&error) {
                        step_in_doubt(me, job).await;
                    }
                    return Err(error);
                }
            }
            Ok::<_, FencedLockError>(())
        })
        .await?;
    Ok(ended(me, row, began, &outcome))
}

/// One step, which writes the row of its slot.
async fn step<S: Ledger>(
    me: &Me<S>,
    job: &mut Job<'_, S>,
    (row, resource): (&str, &ResourceName),
    number: u64,
    plan: Work,
) -> Result<u64, FencedLockError> {
    job.step(async |tx| {
        let write = me.new_write();
        me.write(tx, row, resource, write, plan.takes / 3).await?;
        let stored = S::row(tx, row).await?.unwrap_or_default();
        let stored = Row {
            steps: number,
            ..stored
        };
        S::set_row(tx, row, &stored).await?;
        me.writes(write, tx.sequencer().token().get());
        Ok(number)
    })
    .await
}

const fn is_unknown(error: &FencedLockError) -> bool {
    matches!(
        error,
        FencedLockError::Store(FenceError::CommitUnknown { .. })
    )
}

/// Asks for another step, though it is not known whether the last one was committed.
async fn step_in_doubt<S: Ledger>(me: &Me<S>, job: &mut Job<'_, S>) {
    me.saw("step asked for after an unknown commit");
    let step = async |_: &mut FencedTx<S>| {
        let what = "a step begins after an unknown commit".to_owned();
        me.broke("job-steps", what);
        Ok::<_, FencedLockError>(())
    };
    let _refused = job.step(step).await;
}

/// A job of a kind for a slot, with the row that it writes and the resource of its token.
fn prepared<S: Ledger>(me: &Me<S>, kind: &str, plan: Work) -> (Once<S>, String, ResourceName) {
    let (job, slot) = (format!("{kind}{}", plan.on), slot_of(plan));
    let (row, resource) = (format!("{kind}/{job}/{slot}"), named(&format!("job:{job}")));
    let once = me.fenced().once(&job, slot).ttl(me.ttl());
    let once = match plan.wait {
        Some(wait) => once.wait(wait),
        None => once,
    };
    (once, row, resource)
}

fn slot_of(plan: Work) -> &'static str {
    match plan.choice & 32 {
        0 => "2026-11-27T02:00:00Z",
        _ => "invoice:4711",
    }
}

/// Reports an outcome. The work of a slot that backs off has not begun.
fn ended<S: Ledger>(me: &Me<S>, row: String, began: bool, outcome: &JobOutcome<()>) -> How {
    // A slot was due, and then is not, if the clock of the store went back.
    let is_backing_off = matches!(outcome, JobOutcome::BackingOff { .. });
    if began && is_backing_off && !me.store_clock_jumps() {
        me.broke("job-failure", format!("{row} began: {outcome:?}"));
    }
    let (ran, done) = match outcome {
        JobOutcome::Ran((), receipt) => (true, Some(receipt.token().get())),
        JobOutcome::Done { token, .. } => (false, Some(token.get())),
        _ => (false, None),
    };
    me.act(Act::Job { row, ran, done });
    match outcome {
        JobOutcome::Held => How::Held,
        JobOutcome::BackingOff { .. } => {
            me.saw("job backing off");
            How::Held
        }
        _ => How::Done,
    }
}
