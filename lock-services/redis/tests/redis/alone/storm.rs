//! Connections that break all the time, under load.

use std::{sync::Arc, time::Duration};

use e2e::{load::Load, observer::until, proxy::Fault};
use futures_util::future::join_all;
use lock_core::{
    LockManager, Ttl,
    backend::{Runtime, TokioRuntime},
};

use crate::{
    alone::alone,
    faults::world::{World, impatient, is_free},
};

const RESOURCES: usize = 4;
const TASKS: u64 = 24;
const LENGTH: Duration = Duration::from_secs(3);
const TTL: Ttl = Ttl::millis(800);
const BETWEEN_BREAKS: Duration = Duration::from_millis(60);

/// The state that all tasks of the storm share.
struct Storm {
    managers: Vec<LockManager>,
    load: Load<RESOURCES>,
}

impl Storm {
    /// Runs sections, one after the other, until the storm is over. Returns the number of sections.
    async fn task(&self, task: u64) -> u64 {
        let locks = &self.managers[usize::try_from(task).unwrap() % self.managers.len()];
        let mut turns = 0;
        while !self.load.is_over() {
            turns += 1;
            let resource = usize::try_from(task + turns).unwrap() % RESOURCES;
            self.section(locks, resource).await;
        }
        turns
    }

    async fn section(&self, locks: &LockManager, resource: usize) {
        let (number, _) = self.load.next();
        // Some sections outlast their lease, so the twin loses a number of another section.
        let sleepy = number.is_multiple_of(16);
        let asked = TokioRuntime.now();
        let guard = locks
            .acquire(format!("r{resource}"))
            .ttl(TTL)
            .renew(!sleepy)
            .await
            .unwrap();
        let section = self.load.enter(resource, &guard, asked).await;
        if sleepy {
            tokio::time::sleep(2 * TTL.get()).await;
        } else {
            tokio::task::yield_now().await;
        }
        section.add(number).await;
        // Half of the sections wait for the result of their release. The watchdog releases the
        // rest. Either result may be unknown.
        if rand::random() {
            guard.release().await.ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_broken_connections_repeats_no_token_and_loses_no_update() {
    let _alone = alone().await;
    let world = World::new().await;
    let storm = Arc::new(Storm {
        managers: vec![
            world.locks.clone(),
            impatient(&world.proxy.url("redis")).await,
        ],
        load: Load::default(),
    });
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let storm = Arc::clone(&storm);
            tokio::spawn(async move { storm.task(task).await })
        })
        .collect();
    let until_then = TokioRuntime.now() + LENGTH;
    let mut breaks = 0;
    for fault in [Fault::Cut, Fault::Reset].into_iter().cycle() {
        if TokioRuntime.now() > until_then {
            break;
        }
        tokio::time::sleep(BETWEEN_BREAKS).await;
        world.proxy.inflict(fault);
        breaks += 1;
    }
    let load = &storm.load;
    load.stop();
    let turns: Vec<_> = join_all(tasks)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();

    let (grants, connections) = (load.history.grants(), world.proxy.connections());
    println!("{breaks} breaks, {connections} connections, {grants} grants, {turns:?}");
    assert!(connections >= breaks, "connections were not broken");
    assert!(grants > breaks, "hardly anybody got through");
    load.assert_sound();
    for resource in 0..RESOURCES {
        // The watchdog releases dropped guards.
        let resource = format!("r{resource}");
        until("released", async || is_free(&world.rival, &resource).await).await;
    }
    assert!(load.lost_from_twins() > 0, "the controls have lost nothing");
    let last = world.rival.acquire("r0").await.unwrap();
    last.release().await.unwrap();
    assert!(world.observer.leases("*:lease:*").await.is_empty());
    world.observer.passing_keys().await;
    drop(world.server);
}
