//! Jobs that run once for each slot.

use fenced_jobs::{JobOutcome, Jobs};
use fenced_store::FencedLockError;

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
    let (job, slot) = (format!("once{}", plan.on), slot_of(plan));
    let (row, resource) = (format!("once/{job}/{slot}"), named(&format!("job:{job}")));
    let once = me.fenced().once(&job, slot).ttl(me.ttl());
    let once = match plan.wait {
        Some(wait) => once.wait(wait),
        None => once,
    };
    let fails = plan.choice & 24 == 24;
    let outcome = once
        .run(async |tx| {
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
    Ok(ended(me, row, &outcome))
}

/// Runs a job for a slot in steps.
pub(super) async fn steps<S: Ledger>(me: &Me<S>, plan: Work) -> Worked {
    let (job, slot) = (format!("steps{}", plan.on), slot_of(plan));
    let (row, resource) = (format!("steps/{job}/{slot}"), named(&format!("job:{job}")));
    let once = me.fenced().once(&job, slot).ttl(me.ttl());
    let once = match plan.wait {
        Some(wait) => once.wait(wait),
        None => once,
    };
    let outcome = once
        .steps(async |job| {
            if (1..STEPS).contains(&job.committed_steps()) {
                me.saw("takeover between steps");
            }
            while job.committed_steps() < STEPS {
                let step = job.committed_steps() + 1;
                if step == 2 {
                    me.at_place(1, plan).await;
                }
                job.step(async |tx| {
                    let write = me.new_write();
                    me.write(tx, &row, &resource, write, plan.takes / 3).await?;
                    let stored = S::row(tx, &row).await?.unwrap_or_default();
                    S::set_row(
                        tx,
                        &row,
                        &Row {
                            steps: step,
                            ..stored
                        },
                    )
                    .await?;
                    me.writes(write, tx.sequencer().token().get());
                    Ok::<_, FencedLockError>(step)
                })
                .await?;
            }
            Ok::<_, FencedLockError>(())
        })
        .await?;
    Ok(ended(me, row, &outcome))
}

fn slot_of(plan: Work) -> &'static str {
    match plan.choice & 32 {
        0 => "2026-11-27T02:00:00Z",
        _ => "invoice:4711",
    }
}

fn ended<S: Ledger>(me: &Me<S>, row: String, outcome: &JobOutcome<()>) -> How {
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
