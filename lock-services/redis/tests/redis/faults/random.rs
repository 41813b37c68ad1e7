//! Messages are lost, delayed and overtaken at random, under load and with waiters that give up.

use std::{sync::Arc, time::Duration};

use e2e::{
    load::Load,
    observer::until,
    proxy::{Fault, Proxy, Trap},
};
use futures_util::future::join_all;
use lock_core::{
    LockManager, ResourceName, Ttl,
    backend::{Runtime, TokioRuntime},
};
use rand::{RngExt, seq::IndexedRandom};
use tokio::time::timeout;

use crate::faults::world::{World, impatient_service};

const RESOURCES: usize = 3;
const MANAGERS: usize = 3;
const TASKS: usize = 18;
const FAULTS: usize = 150;
const BETWEEN_FAULTS: Duration = Duration::from_millis(30);
/// The number of faults for which a message is delayed.
const HELD_UP_FOR: usize = 12;
/// Some sections take longer than this ttl, and their leases are not renewed.
const TTL: Ttl = Ttl::millis(800);
const PATIENCE: Duration = Duration::from_secs(60);

async fn task(load: Arc<Load<RESOURCES>>, locks: LockManager) {
    while !load.is_over() {
        let wait = Duration::from_millis(rand::random_range(0..3000));
        if rand::random_bool(0.2) {
            // The waiter gives up at any moment.
            timeout(wait / 4, section(&load, &locks, wait)).await.ok();
        } else {
            section(&load, &locks, wait).await;
        }
    }
}

/// A section. It ends, whatever the network does to it.
async fn section(load: &Load<RESOURCES>, locks: &LockManager, wait: Duration) {
    let (number, resource) = load.next();
    let asked = TokioRuntime.now();
    let sleepy = number.is_multiple_of(8);
    let acquire = locks
        .acquire(format!("r{resource}"))
        .ttl(TTL)
        .renew(!sleepy);
    let Ok(guard) = acquire.wait(wait).await else {
        return;
    };
    let section = load.enter(resource, &guard, asked).await;
    let work = Duration::from_millis(rand::random_range(0..4));
    tokio::time::sleep(if sleepy { 2 * TTL.get() } else { work }).await;
    section.add(number).await;
    if rand::random() {
        guard.release().await.ok();
    }
}

/// Lays a trap for the next message about some resource.
fn trap(proxy: &Proxy) -> Trap {
    let faults = [
        Fault::HoldRequests,
        Fault::HoldReplies,
        Fault::BlackHole,
        Fault::DropRequests,
        Fault::DropReplies,
        Fault::DropPushes,
        Fault::Cut,
        Fault::Reset,
        Fault::Delay(Duration::from_millis(50)),
    ];
    let mut random = rand::rng();
    let fault = *faults.choose(&mut random).unwrap();
    let about = format!(":r{}", random.random_range(0..RESOURCES));
    match random.random_range(0..3) {
        0 => proxy.at_request(&about, fault),
        1 => proxy.at_reply_to(&about, fault),
        _ => proxy.at_push(&about, fault),
    }
}

/// Catches: orders of faults without a test of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_loses_and_delays_at_random_breaks_no_order_and_loses_no_update() {
    let world = World::new().await;
    let load = Arc::new(Load::default());
    let mut managers = Vec::new();
    for _ in 0..MANAGERS {
        let service = impatient_service(&world.proxy.url("redis")).await;
        managers.push(LockManager::builder().build(service).unwrap());
    }
    let tasks: Vec<_> = managers
        .iter()
        .cycle()
        .take(TASKS)
        .map(|locks| tokio::spawn(task(Arc::clone(&load), locks.clone())))
        .collect();
    let mut traps = Vec::new();
    for number in 1..=FAULTS {
        traps.push(trap(&world.proxy));
        tokio::time::sleep(BETWEEN_FAULTS).await;
        if number % HELD_UP_FOR == 0 {
            world.proxy.let_go();
        }
    }
    load.stop();
    let sprung = traps.iter().filter(|trap| trap.has_sprung()).count();
    drop(traps);
    world.proxy.let_go();
    for task in timeout(PATIENCE, join_all(tasks))
        .await
        .expect("a task is stuck")
    {
        task.unwrap();
    }
    let grants = load.history.grants();
    println!("{sprung} of {FAULTS} faults happened, {grants} grants");
    assert!(sprung > FAULTS / 2, "hardly anything happened");
    load.assert_sound();
    for number in 0..RESOURCES {
        let resource = ResourceName::new(format!("r{number}")).unwrap();
        until("free", async || {
            let seen = world.rival.inspect(&resource).await.unwrap();
            seen.holder.is_none()
        })
        .await;
        // A place in the queue whose cancel was lost, too, is passed over.
        let acquire = world.rival.acquire(resource).wait(Duration::from_secs(10));
        acquire.await.unwrap().release().await.unwrap();
    }
    assert!(load.lost_from_twins() > 0, "the controls have lost nothing");
    world.observer.passing_keys().await;
}
