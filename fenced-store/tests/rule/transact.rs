//! Transactions that are begun again.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use fenced_store::{FenceError, FencedTx};
use sqlx::Error;

use super::{Harness, assert_kind, balance, claimed, grant};

fn busy() -> FenceError {
    let source = Error::PoolTimedOut;
    FenceError::Busy { source }
}

/// The writes of the first attempts are rolled back. The call runs in a task, so its future must
/// own its values.
pub(crate) async fn busy_work_is_done_again<H: Harness>() {
    let (world, ours) = claimed::<H>().await;
    let attempts = Arc::new(AtomicU32::new(0));
    let (store, task_attempts) = (world.store().clone(), Arc::clone(&attempts));
    let presented = ours.clone();
    #[allow(clippy::disallowed_methods, reason = "it is awaited below")]
    let task = tokio::spawn(async move {
        let work = async |tx: &mut FencedTx<H::Db>| {
            H::add(&mut *tx, 1).await?;
            match task_attempts.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => Err(busy()),
                _ => Ok(H::balance(&mut *tx).await),
            }
        };
        store.transact(&presented, work).await
    });
    let (seen, receipt) = task.await.unwrap().unwrap();
    assert_eq!((seen, receipt.token()), (101, ours.token()));
    assert_eq!(attempts.load(Ordering::SeqCst), 3);
    assert_eq!(balance(&world).await, 101);
}

/// No other try follows a refusal of the grant, or an error of the work itself.
pub(crate) async fn a_final_error_is_not_followed_by_another_try<H: Harness>() {
    let (world, old) = claimed::<H>().await;
    let new = grant("account:42", 34);
    let attempts = AtomicU32::new(0);
    let failing = async |tx: &mut FencedTx<H::Db>| -> Result<(), FenceError> {
        attempts.fetch_add(1, Ordering::SeqCst);
        H::add(&mut *tx, 1).await?;
        Err(Error::RowNotFound.into())
    };
    let failed = world.store().transact(&old, failing).await.unwrap_err();
    assert_kind!(failed, Db);
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
    let fenced = async |_: &mut FencedTx<H::Db>| -> Result<(), FenceError> {
        attempts.fetch_add(1, Ordering::SeqCst);
        Err(FenceError::stale(
            old.resource().clone(),
            old.token(),
            new.token(),
        ))
    };
    let stale = world.store().transact(&old, fenced).await.unwrap_err();
    assert_kind!(stale, Stale);
    assert_eq!(attempts.swap(1, Ordering::SeqCst), 2, "a refusal is final");
    world.store().claim(&new).await.unwrap();
    let refused = world.store().transact(&old, failing).await.unwrap_err();
    assert_kind!(refused, Stale);
    assert_eq!(attempts.load(Ordering::SeqCst), 1, "it never began");
    assert_eq!(balance(&world).await, 100);
}
