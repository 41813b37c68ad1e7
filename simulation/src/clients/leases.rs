//! Leases of the lock service alone.

use std::time::Duration;

use lock_core::{ErrorKind, Extension, Holder, Owner, Released};
use lock_testing::DropAt;

use super::{Me, Worked};
use crate::{
    judge::act::{How, WorkId},
    plan::Work,
};

/// Holds a lease for a while, looks at it again and again, and drops or releases it.
pub(super) async fn lease(me: &Me, id: WorkId, plan: Work) -> Worked {
    let resource = me.resource(plan.on);
    me.asks(id, &resource);
    let guard = me.lease(&resource, plan).await?;
    me.holds(id, &guard, false, false);
    for place in 0..4 {
        me.at_place(place, plan).await;
        me.think(plan.takes / 4).await;
        me.still_holds(&guard);
    }
    if plan.choice & 4 == 0 {
        me.release(Box::new(guard), false).await?;
    }
    Ok(How::Done)
}

/// An acquisition whose holder is known, that is dropped and repeated. After its release it is over.
pub(super) async fn given(me: &Me, id: WorkId, plan: Work) -> Worked {
    let (resource, holder) = (me.resource(plan.on), Holder::draw(me.runtime()));
    me.asks(id, &resource);
    let acquire = me.lease(&resource, plan).holder(holder);
    let at = DropAt::waiting(usize::from(plan.choice >> 3));
    drop(at.poll(acquire.clone()).await);
    me.think(plan.takes / 4).await;
    let guard = acquire.clone().await?;
    me.holds(id, &guard, false, true);
    me.think(plan.takes / 2).await;
    me.at_place(2, plan).await;
    me.still_holds(&guard);
    if me.release(Box::new(guard), false).await? == Released::Released {
        repeat_after_release(me, acquire.wait(Duration::ZERO)).await;
    }
    Ok(How::Done)
}

/// A released acquisition gets nothing any more.
async fn repeat_after_release(me: &Me, acquire: lock_core::Acquire) {
    match acquire.await {
        Ok(guard) if me.is_sound() => {
            let what = format!("{} was released, and granted again", guard.token());
            me.broke("replay", what);
        }
        Err(error) if error.kind() == ErrorKind::Released => me.saw("copy met a tombstone"),
        _ => {}
    }
}

/// Two holds of one owner: each gives back its own.
pub(super) async fn owner(me: &Me, id: WorkId, plan: Work) -> Worked {
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
pub(super) async fn together(me: &Me, id: WorkId, plan: Work) -> Worked {
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
