//! What is dropped in mid-air leaves nothing in etcd: no place in line, and no lease that a place
//! hangs on.

use std::{future::IntoFuture, pin::pin, task::Poll, time::Duration};

use e2e::servers::{etcd, until};
use lock_core::{LockManager, Ttl};
use tokio::time::timeout;

use crate::world::{PATIENCE, keys, manager, prefix};

const TTL: Ttl = Ttl::secs(600);

/// Polls an acquire that many times and drops it. True if it completed.
async fn poll_times(locks: &LockManager, times: usize) -> bool {
    let mut acquire = pin!(locks.acquire("r").ttl(TTL).into_future());
    let mut polls = 0;
    std::future::poll_fn(|cx| {
        polls += 1;
        match acquire.as_mut().poll(cx) {
            Poll::Ready(guard) => {
                drop(guard.unwrap());
                Poll::Ready(true)
            }
            Poll::Pending if polls >= times => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test]
async fn an_acquire_dropped_at_any_await_leaves_no_place_in_etcd() {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let line = format!("{prefix}/lock/");
    for contended in [false, true] {
        let mut times = 1;
        loop {
            let holder = if contended {
                Some(locks.acquire("r").ttl(TTL).await.unwrap())
            } else {
                None
            };
            // A waiter does not complete: it is dropped after so many wake-ups, or so much time.
            let polled = timeout(Duration::from_secs(2), poll_times(&locks, times)).await;
            let at = format!("contended: {contended}, dropped at poll {times}");
            let left = usize::from(contended);
            until(&at, || async { keys(server, &line).await.len() == left }).await;
            if let Some(holder) = holder {
                holder.release().await.unwrap();
            }
            let next = timeout(PATIENCE, locks.acquire("r").ttl(TTL).into_future()).await;
            next.expect("somebody is in the way")
                .unwrap()
                .release()
                .await
                .unwrap();
            if polled != Ok(false) {
                break;
            }
            times += 1;
        }
        assert!(times > 2, "it had hardly begun");
    }
}

#[tokio::test]
async fn leases_of_what_has_ended_are_given_back() {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let guard = locks.acquire("r").ttl(TTL).await.unwrap();
    let place = keys(server, &format!("{prefix}/lock/")).await.remove(0);
    let lease = place.rsplit('/').next().unwrap().to_owned();
    let time_left = async || server.ctl(&["lease", "timetolive", &lease]).await;
    assert!(time_left().await.contains("remaining"), "it is there");
    guard.release().await.unwrap();
    until("the lease is given back", || async {
        time_left().await.contains("already expired")
    })
    .await;
}
