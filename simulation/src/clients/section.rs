//! Critical sections that write under a fence.

use std::time::Duration;

use fenced_store::{FenceError, FencedGuard};
use lock_core::Attempt;

use super::{Me, Worked};
use crate::{
    judge::act::{How, WorkId},
    plan::Work,
    store::Ledger,
};

/// Locks, reads, writes, releases.
pub(super) async fn section<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> Worked {
    let resource = me.resource(plan.on);
    me.asks(id, &resource);
    let guard = me.acquire(&resource, plan).await?;
    in_section(me, id, guard, plan).await
}

/// As [`section`], if the lease is free.
pub(super) async fn attempt<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> Worked {
    let resource = me.resource(plan.on);
    me.asks(id, &resource);
    match me.acquire(&resource, plan).try_acquire().await? {
        Attempt::Granted(guard) => in_section(me, id, guard, plan).await,
        Attempt::Held { .. } => Ok(How::Held),
    }
}

async fn in_section<S: Ledger>(
    me: &Me<S>,
    id: WorkId,
    guard: FencedGuard<S>,
    plan: Work,
) -> Worked {
    me.holds(id, &guard, true, false);
    let resource = guard.resource().clone();
    let read = me.read_unfenced(&resource);
    me.at_place(0, plan).await;
    me.think(plan.takes / 2).await;
    me.still_holds(&guard);
    me.at_place(1, plan).await;
    let mut tx = me.begin(&guard).await?;
    let write = me.new_write();
    me.write(&mut tx, resource.as_str(), &resource, write, plan.takes / 2)
        .await?;
    me.at_place(2, plan).await;
    let is_held = guard.is_held();
    me.at_place(3, plan).await;
    if is_held {
        me.write_unfenced(&guard, read);
    }
    me.writes(write, guard.token().get());
    if plan.choice & 2 == 0 {
        let committed = tx.commit_and_release(guard).await;
        me.wrote(write, &committed, |not_committed| &not_committed.error);
        let Err(not_committed) = committed else {
            return Ok(How::Done);
        };
        let (error, guard) = me.taken_out(not_committed, plan).await;
        settle_after(me, &guard, &error).await;
        release(me, guard, plan).await?;
        return Err(error.into());
    }
    let committed = tx.commit().await;
    me.wrote(write, &committed, |error| error);
    if let Err(error) = &committed {
        settle_after(me, &guard, error).await;
    }
    me.still_holds(&guard);
    me.at_place(4, plan).await;
    release(me, guard, plan).await?;
    Ok(committed.map(|_| How::Done)?)
}

/// Waits until a commit has happened or never will.
async fn settle_after<S: Ledger>(me: &Me<S>, guard: &FencedGuard<S>, error: &FenceError) {
    let settled = me.fenced().store().settle(guard.sequencer()).await;
    if settled.is_ok() && matches!(error, FenceError::CommitUnknown { .. }) {
        me.saw("unknown commit settled");
    }
}

/// Releases, or drops the guard.
async fn release<S: Ledger>(
    me: &Me<S>,
    guard: FencedGuard<S>,
    plan: Work,
) -> Result<(), lock_core::Error> {
    match plan.choice & 4 {
        0 => drop(me.release(guard, false).await?),
        _ => me.drop_guard(guard),
    }
    Ok(())
}

/// Two resources under one transaction.
pub(super) async fn both<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> Worked {
    let resources = [me.resource(plan.on), me.resource(1 - plan.on.min(1))];
    for resource in &resources {
        me.asks(id, resource);
    }
    let wait = plan.wait.unwrap_or(Duration::from_secs(20));
    let acquire = me.fenced().acquire_all(resources.iter().cloned(), wait);
    let guards = acquire.ttl(me.ttl()).await?;
    for guard in guards.iter() {
        me.holds(id, guard, true, false);
    }
    me.think(plan.takes / 2).await;
    me.at_place(1, plan).await;
    let mut tx = guards.begin().await?;
    let write = me.new_write();
    for resource in &resources {
        me.write(&mut tx, resource.as_str(), resource, write, plan.takes / 4)
            .await?;
    }
    me.at_place(2, plan).await;
    me.writes(write, guards[0].token().get());
    let committed = tx.commit().await;
    me.wrote(write, &committed, |error| error);
    if plan.choice & 4 == 0 {
        guards.release_all().await?;
    }
    Ok(committed.map(|_| How::Done)?)
}
