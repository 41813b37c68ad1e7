//! Leaders whose terms are fences.

use fenced_jobs::Jobs;
use fenced_store::{FenceError, FencedLockError, FencedLocks};

use crate::rule::{Harness, balance, fresh, service};

/// The control writes outside of the fence, and is not refused.
pub(crate) async fn a_deposed_leader_is_refused<H: Harness>() {
    let world: H = fresh().await;
    let one = FencedLocks::new(service("redis"), world.store().clone());
    let two = one.clone();
    let old = one.lead("scheduler").campaign().await.unwrap();
    let mut tx = old.begin().await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();

    one.locks().force_release("lead:scheduler").await.unwrap();
    let new = two.lead("scheduler").campaign().await.unwrap();
    assert!(new.token() > old.token());
    let refused = old.begin().await.unwrap_err();
    assert!(refused.is_fenced(), "{refused}");
    H::add_unfenced(world.store(), 1).await.unwrap();
    assert_eq!(balance(&world).await, 102);

    let mut tx = new.begin().await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    new.resign().await.unwrap();
    let served = one.lead("scheduler").run(async |term| {
        let mut tx = term.begin().await?;
        H::add(&mut tx, 1).await?;
        Ok::<_, FencedLockError>(tx.commit().await?.token())
    });
    assert!(served.await.unwrap() >= refused.needed_token().unwrap());
    assert_eq!(balance(&world).await, 104);
}

/// A leader does not stop because the store has refused a write of its section.
pub(crate) async fn a_leader_that_was_refused_leads_again<H: Harness>() {
    let world: H = fresh().await;
    let shop = FencedLocks::new(service("redis"), world.store().clone());
    let mut terms = Vec::new();
    let lead = shop.lead("scheduler");
    let ended = lead.run(async |term| {
        terms.push(term.token());
        if terms.len() == 1 {
            let locks = shop.locks();
            locks
                .force_release("lead:scheduler")
                .await
                .map_err(FencedLockError::from)?;
            drop(shop.lead("scheduler").campaign().await?);
        }
        let mut tx = term.begin().await?;
        H::add(&mut tx, 1).await?;
        tx.commit().await?;
        Ok::<_, FencedLockError>(())
    });
    ended.await.unwrap();
    assert!(terms.len() == 2 && terms[0] < terms[1], "{terms:?}");
    assert_eq!(balance(&world).await, 101);

    let failed = shop
        .lead("scheduler")
        .run(async |_| Err::<(), _>(FencedLockError::from(FenceError::Aborted)));
    assert!(failed.await.is_err(), "its own error in a good term");
}
