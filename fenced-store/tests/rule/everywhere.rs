//! Sections over a real database that are stopped at each of their awaits, in a simulated process
//! whose lease runs out meanwhile, while a rival does the same.

#![expect(clippy::future_not_send, reason = "each test is one thread")]

use std::{cell::Cell, time::Duration};

use fenced_store::{FencedLockError, FencedLocks, FencedStore, jobs::Standing};
use lock_testing::{Process, pause};

use super::{Harness, balance, fresh};

/// Longer than any answer of a database on this machine.
const REAL_IO: Duration = Duration::from_secs(1);

const SLOT: &str = "2026-11-27T02:00:00Z";

struct World<H: Harness> {
    world: H,
    /// Does not wait long for whoever is stopped inside a transaction.
    store: FencedStore<H::Db>,
    /// How many deposits were acknowledged.
    deposits: Cell<i64>,
}

impl<H: Harness> World<H> {
    async fn new() -> Self {
        let world: H = fresh().await;
        Self {
            store: world.impatient().await,
            world,
            deposits: Cell::new(0),
        }
    }

    fn protected(&self, me: &Process) -> FencedLocks<H::Db> {
        FencedLocks::new(me.locks().clone(), self.store.clone())
    }

    async fn add_to(&self, before: i64) -> Result<(), FencedLockError> {
        let mut connection = self.store.pool().acquire().await?;
        let now = H::balance(&mut connection).await;
        // Sets it to what was read and one more.
        H::add_by_itself(&mut connection, before + 1 - now).await?;
        Ok(())
    }

    async fn balance_is_that_of_the_deposits(&self) -> bool {
        balance(&self.world).await == 100 + self.deposits.get()
    }

    async fn slot_was_done_as_often_as_it_says(&self) -> bool {
        let state = self.store.job_slot("night", SLOT).await.unwrap();
        let done = matches!(state.standing, Standing::Done { .. });
        balance(&self.world).await == 100 + i64::from(done)
    }
}

/// A deposit: reads, and sets the balance to one more.
async fn deposit<H: Harness>(bank: &World<H>, me: &Process) -> Result<(), FencedLockError> {
    let guard = bank.protected(me).acquire("account:42").await?;
    let before = balance(&bank.world).await;
    let mut tx = guard.begin().await?;
    let now = H::balance(&mut *tx).await;
    H::add(&mut *tx, before + 1 - now).await?;
    tx.commit().await?;
    bank.deposits.set(bank.deposits.get() + 1);
    guard.release().await?;
    Ok(())
}

/// Catches: a section that writes after it was stopped past its lease.
pub(crate) async fn a_deposit_that_is_stopped_anywhere_loses_nothing<H: Harness>() {
    let passed = pause::at_every_await(World::<H>::new, deposit)
        .real_io(REAL_IO)
        .check(World::balance_is_that_of_the_deposits)
        .await;
    assert!(passed.refused > 0);
}

/// The control: the same under the lease alone.
pub(crate) async fn an_unfenced_deposit_that_is_stopped_loses_another<H: Harness>() {
    let unfenced = async |bank: &World<H>, me: &Process| {
        let guard = me.locks().acquire("account:42").await?;
        let before = balance(&bank.world).await;
        bank.add_to(before).await?;
        bank.deposits.set(bank.deposits.get() + 1);
        guard.release().await?;
        Ok::<_, FencedLockError>(())
    };
    // An answer that is there at once is no await: not every try stops it in the middle.
    for _ in 0..20 {
        let test = pause::at_every_await(World::<H>::new, unfenced).real_io(REAL_IO);
        let broken = test.try_check(World::balance_is_that_of_the_deposits).await;
        if broken.is_err() {
            return;
        }
    }
    panic!("the control has to lose what the fence keeps");
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
        .check(World::slot_was_done_as_often_as_it_says)
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

/// Each of them on the one thread that stopping takes.
macro_rules! pause_cases {
    ($harness:ty) => {
        pause_cases!($harness:
            a_deposit_that_is_stopped_anywhere_loses_nothing,
            an_unfenced_deposit_that_is_stopped_loses_another,
            a_job_that_is_stopped_anywhere_is_done_once,
            a_step_that_is_stopped_anywhere_is_done_once,
            a_leader_that_is_stopped_anywhere_overwrites_nothing,
        );
    };
    ($harness:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                rule::everywhere::$case::<$harness>().await;
            }
        )*
    };
}
pub(crate) use pause_cases;
