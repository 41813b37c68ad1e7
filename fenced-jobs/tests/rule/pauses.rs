//! Jobs and leaders over a real database that are stopped at each of their awaits.

#![expect(clippy::future_not_send, reason = "each test is one thread")]

use fenced_jobs::{JobSlots, Jobs, Standing};
use fenced_store::FencedLockError;
use lock_testing::{Process, pause};

use crate::rule::{
    Harness, balance,
    everywhere::{REAL_IO, World},
};

const SLOT: &str = "2026-11-27T02:00:00Z";

async fn slot_was_done_as_often_as_it_says<H: Harness>(world: &World<H>) -> bool {
    let state = world.store.job_slot("night", SLOT).await.unwrap();
    let done = matches!(state.standing, Standing::Done { .. });
    balance(&world.world).await == 100 + i64::from(done)
}

pub(crate) async fn a_job_that_is_stopped_anywhere_is_done_once<H: Harness>() {
    let run = async |world: &World<H>, me: &Process| {
        let once = world.protected(me);
        let once = once.once("night", SLOT).run(async |tx| {
            H::add(&mut *tx, 1).await?;
            Ok::<_, FencedLockError>(())
        });
        once.await
    };
    pause::at_every_await(World::<H>::new, run)
        .real_io(REAL_IO)
        .check(slot_was_done_as_often_as_it_says)
        .await;
}

/// A job in steps that is taken over.
pub(crate) async fn a_step_that_is_stopped_anywhere_is_done_once<H: Harness>() {
    let run = async |world: &World<H>, me: &Process| {
        let jobs = world.protected(me);
        let once = jobs.once("night", SLOT).steps(async |job| {
            while job.committed_steps() < 1 {
                job.step(async |tx| H::add(&mut *tx, 1).await.map_err(FencedLockError::from))
                    .await?;
            }
            Ok::<_, FencedLockError>(())
        });
        once.await
    };
    pause::at_every_await(World::<H>::new, run)
        .real_io(REAL_IO)
        .check(async |world: &World<H>| balance(&world.world).await <= 101)
        .await;
}

pub(crate) async fn a_leader_that_is_stopped_anywhere_overwrites_nothing<H: Harness>() {
    let lead = async |world: &World<H>, me: &Process| {
        let shop = world.protected(me);
        let term = shop.lead("scheduler").campaign().await?;
        let before = balance(&world.world).await;
        let mut tx = term.begin().await?;
        let now = H::balance(&mut *tx).await;
        H::add(&mut *tx, before + 1 - now).await?;
        tx.commit().await?;
        world.deposits.set(world.deposits.get() + 1);
        term.resign().await?;
        Ok::<_, FencedLockError>(())
    };
    let passed = pause::at_every_await(World::<H>::new, lead)
        .real_io(REAL_IO)
        .check(World::balance_is_that_of_the_deposits)
        .await;
    assert!(passed.refused > 0);
}
