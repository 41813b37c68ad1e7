//! Leases of the lock service alone.

use std::time::Duration;

use lock_core::{Attempt, ErrorKind, Extension, Holder, Owner, Released, RetryPolicy};
use lock_testing::DropAt;

use super::{Me, Worked};
use crate::{
    judge::act::{How, WorkId},
    plan::Work,
    store::Ledger,
};

/// Holds a lease for a while, looks at it again and again, and drops or releases it.
pub(super) async fn lease<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> Worked {
    let resource = me.resource(plan.on);
    me.asks(id, &resource);
    let max_hold = (plan.choice & 8 == 8).then(|| me.ttl().get());
    let acquire = me.lease(&resource, plan);
    let acquire = match max_hold {
        Some(max_hold) => acquire.max_hold(max_hold),
        None => acquire,
    };
    let acquire = match plan.choice & 48 {
        48 => acquire.retry(RetryPolicy::exponential(Duration::from_millis(20))),
        32 => acquire.max_waiters(1),
        _ => acquire,
    };
    let started = me.runtime().now();
    let guard = if plan.choice & 48 == 16 {
        match acquire.try_acquire().await? {
            Attempt::Granted(guard) => guard,
            Attempt::Held { .. } => return Ok(How::Held),
        }
    } else {
        let acquired = acquire.await;
        me.has_waited(started, plan, acquired.as_ref().err());
        acquired?
    };
    me.is_whole(&guard);
    me.holds(id, &guard, false, false);
    let held = me.runtime().now();
    if plan.choice & 64 == 64 {
        me.think(plan.takes).await;
        me.is_counted(&guard).await;
    }
    for place in 0..4 {
        me.at_place(place, plan).await;
        me.think(plan.takes / 4).await;
        me.still_holds(&guard);
        me.knows_its_loss(&guard);
        let longest = max_hold.map(|max_hold| max_hold + me.ttl().get());
        if longest
            .is_some_and(|longest| guard.is_held() && me.runtime().now().since(held) > longest)
        {
            me.broke(
                "guard-max-hold",
                format!("{} is held beyond max_hold", guard.token()),
            );
        }
    }
    match plan.choice & 4 {
        0 => drop(me.release(Box::new(guard), false).await?),
        _ => me.drop_guard(Box::new(guard)),
    }
    Ok(How::Done)
}

/// An acquisition whose holder is known, that is dropped and repeated. A guard that is dropped
/// gives up its own attempt only. After its release the acquisition is over.
pub(super) async fn given<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> Worked {
    let (resource, holder) = (me.resource(plan.on), Holder::draw(me.runtime()));
    me.asks(id, &resource);
    let acquire = me.lease(&resource, plan).holder(holder);
    let at = DropAt::waiting(usize::from(plan.choice >> 3));
    drop(at.poll(acquire.clone()).await);
    me.think(plan.takes / 4).await;
    let mut guard = acquire.clone().await?;
    me.holds(id, &guard, false, true);
    if plan.choice & 4 == 4 {
        let again = acquire.clone().await?;
        me.holds(id, &again, false, true);
        me.drop_guard(Box::new(std::mem::replace(&mut guard, again)));
    }
    me.think(plan.takes / 2).await;
    me.at_place(2, plan).await;
    me.still_holds(&guard);
    if me.release(Box::new(guard), false).await? == Released::Released {
        repeat_after_release(me, acquire.wait(Duration::ZERO)).await;
    }
    Ok(How::Done)
}

/// A released acquisition gets nothing any more.
async fn repeat_after_release<S: Ledger>(me: &Me<S>, acquire: lock_core::Acquire) {
    match acquire.await {
        Ok(guard) if me.is_sound() => {
            let what = format!("{} was released, and granted again", guard.token());
            me.broke("replay", what);
        }
        Err(error) if error.kind() == ErrorKind::Released => {
            me.saw("acquisition repeated after its release")
        }
        _ => {}
    }
}

/// Two holds of one owner. Each guard gives back its own hold.
pub(super) async fn owner<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> Worked {
    if !me.locks().capabilities().has(Extension::Holds) {
        return Ok(How::Done);
    }
    let resource = me.resource(plan.on);
    me.asks(id, &resource);
    let owner = Owner::from_id(Holder::draw(me.runtime()));
    let acquire = me.lease(&resource, plan).owner(&owner);
    let first = acquire.clone().await?;
    me.holds(id, &first, false, true);
    me.think(plan.takes / 4).await;
    let second = acquire.await?;
    me.holds(id, &second, false, true);
    me.think(plan.takes / 4).await;
    me.at_place(1, plan).await;
    let _unknown = me.release(Box::new(first), true).await;
    me.think(plan.takes / 4).await;
    me.at_place(3, plan).await;
    me.still_holds(&second);
    me.release(Box::new(second), true).await?;
    Ok(How::Done)
}

/// Two resources at once, all or none.
pub(super) async fn together<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> Worked {
    if !me.locks().capabilities().has(Extension::Together) {
        return Ok(How::Done);
    }
    let resources = [me.resource(0), me.resource(1)];
    for resource in &resources {
        me.asks(id, resource);
    }
    let acquire = me.locks().acquire_together(resources.iter().cloned());
    let wait = plan.wait.unwrap_or(Duration::from_secs(20));
    let guards = acquire.ttl(me.ttl()).wait(wait).await?;
    for guard in guards.iter() {
        me.holds(id, guard, false, false);
    }
    me.think(plan.takes).await;
    for guard in guards.iter() {
        me.still_holds(guard);
    }
    if plan.choice & 4 == 0 {
        guards.release_all().await?;
    }
    Ok(How::Done)
}
