use std::{sync::Arc, time::Duration};

use e2e::{
    history::{Event, History},
    observer::until_within,
    servers::Redis,
};
use futures_util::future::join_all;
use lock_core::{
    ResourceName, Ttl,
    backend::{Runtime, TokioRuntime},
};
use tokio::time::timeout;

use crate::alone::alone;

const WAITERS: u64 = 4000;
/// The time limit for all waiters to be in the queue, and then for some hundred hand-offs a second,
/// on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Catches: a hand-off that takes longer with more waiters, or that loses a waiter.
#[tokio::test]
async fn thousands_of_waiters_on_one_lock_all_get_their_turn() {
    let _alone = alone().await;
    let server = Redis::start().await;
    let locks = palisade::connect(server.url()).await.unwrap();
    let resource = ResourceName::new("r").unwrap();
    let history = Arc::new(History::default());
    let held = locks.acquire("r").ttl(Ttl::secs(600)).await.unwrap();
    let waiters: Vec<_> = (0..WAITERS)
        .map(|_| {
            let (locks, history) = (locks.clone(), Arc::clone(&history));
            tokio::spawn(async move {
                let asked = TokioRuntime.now();
                let guard = locks.acquire("r").await.unwrap();
                history.granted(Event::answered(guard.sequencer(), asked));
                guard.release().await.unwrap();
            })
        })
        .collect();
    until_within(PATIENCE, "all are in line", async || {
        let seen = locks.inspect(&resource).await;
        seen.is_ok_and(|seen| seen.waiters == Some(WAITERS))
    })
    .await;
    let started = TokioRuntime.now();
    held.release().await.unwrap();
    let served = timeout(PATIENCE, join_all(waiters)).await;
    for waiter in served.expect("some are stuck") {
        waiter.unwrap();
    }
    println!(
        "{WAITERS} hand-offs in {:?}",
        TokioRuntime.now().since(started)
    );
    assert_eq!(history.grants() as u64, WAITERS);
    history.assert_sound();
}
