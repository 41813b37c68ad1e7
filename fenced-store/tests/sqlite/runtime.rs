//! A store on a clock that only the test moves.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use fenced_store::{FenceError, FencedTx};
use lock_core::{InitialToken, backend::Runtime};
use lock_testing::ManualClock;
use sqlx::Sqlite;

use crate::{
    file::SqliteFile,
    rule::{Harness, assert_kind, balance, claimed, grant},
};

/// Catches: a pause that does not use the runtime of the store.
#[tokio::test]
async fn a_busy_transaction_is_begun_again_when_the_clock_of_the_store_says_so() {
    let ((world, ours), clock) = (claimed::<SqliteFile>().await, ManualClock::new());
    let store = world.store().clone().runtime(Arc::new(clock.clone()));
    let attempts = AtomicU32::new(0);
    let work = async |tx: &mut FencedTx<Sqlite>| {
        SqliteFile::add(&mut *tx, 1).await?;
        let source = sqlx::Error::PoolTimedOut;
        match attempts.fetch_add(1, Ordering::SeqCst) {
            0 => Err(FenceError::Busy { source }),
            _ => Ok(()),
        }
    };
    let mut transact = pin!(store.transact(&ours, work));
    let asleep = async {
        while clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        ended = &mut transact => panic!("without a pause: {ended:?}"),
        () = asleep => {}
    }
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
    let wake = clock.next_wake().unwrap();
    clock.advance(wake.since(clock.now()));
    transact.await.unwrap();
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
    assert_eq!(balance(&world).await, 101);
}

/// Catches: a store that takes the time of the machine, and not of its runtime.
#[tokio::test]
async fn a_token_is_plausible_by_the_clock_of_the_store() {
    let ((world, _), clock) = (claimed::<SqliteFile>().await, ManualClock::new());
    let store = world.store().clone().runtime(Arc::new(clock.clone()));
    let ahead = InitialToken::MAX_LEAD * 2;
    let number = InitialToken::clock_token(clock.unix_time() + ahead);
    let early = store.claim(&grant("account:42", number)).await.unwrap_err();
    assert_kind!(early, Implausible);
    clock.advance(ahead);
    store.claim(&grant("account:42", number)).await.unwrap();
}
