//! Many clients at once, some of which give up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use e2e::servers::MySqlServer;
use lock_core::Ttl;
use sqlx::MySqlPool;
use tokio::{task::JoinSet, time::timeout};

use crate::world::{database_of, manager, on_each_server};

const CLIENTS: usize = 3;
const TASKS: usize = 8;
const CYCLES: usize = 10;
const TTL: Ttl = Ttl::secs(60);

/// A resource, and whether a task is in its section.
#[derive(Default)]
struct Section {
    taken: AtomicBool,
    token: AtomicU64,
}

/// Catches: two holders, a token that goes back, a waiter that is never served, and locks that are
/// taken in two orders.
async fn waiters_and_those_who_give_up_share_two_resources<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let sections: Arc<[Section; 2]> = Arc::default();
    let mut tasks = JoinSet::new();
    for client in 0..CLIENTS {
        let locks = manager(database.url()).await;
        for task in 0..TASKS {
            let (locks, sections) = (locks.clone(), Arc::clone(&sections));
            tasks.spawn(async move {
                for cycle in 0..CYCLES {
                    let which = (client + task + cycle) % 2;
                    let acquire = locks.acquire(format!("r{which}")).ttl(TTL);
                    let impatient = (task + cycle) % 4 == 0;
                    let limit = Duration::from_secs(if impatient { 0 } else { 60 });
                    let limit = limit + Duration::from_millis(15);
                    let Ok(acquired) = timeout(limit, async { acquire.await }).await else {
                        assert!(impatient, "it was not served");
                        continue;
                    };
                    let guard = acquired.unwrap();
                    let section = &sections[which];
                    assert!(!section.taken.swap(true, Ordering::SeqCst), "two holders");
                    let token = guard.token().get();
                    assert!(section.token.swap(token, Ordering::SeqCst) < token);
                    tokio::task::yield_now().await;
                    section.taken.store(false, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let status: String = sqlx::query_as("SHOW ENGINE INNODB STATUS")
        .fetch_one(&pool)
        .await
        .map(|(_, _, status): (String, String, String)| status)
        .unwrap();
    // All leases of this test process are in one server.
    let deadlock = status.split_once("LATEST DETECTED DEADLOCK");
    let ours = deadlock.is_some_and(|(_, deadlock)| deadlock.contains("fenced_lease"));
    assert!(!ours, "{status}");
}

on_each_server!(waiters_and_those_who_give_up_share_two_resources,);
