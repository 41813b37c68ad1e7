//! Sections over a real database that are stopped at each of their awaits, in a simulated process
//! whose lease runs out meanwhile, while a rival does the same.

#![expect(clippy::future_not_send, reason = "each test is one thread")]

use std::{cell::Cell, time::Duration};

use fenced_store::{FencedLockError, FencedLocks, FencedStore, jobs::to_read};
use lock_testing::{Process, pause};

use super::{Harness, balance, fresh};

/// Longer than any answer of a database on this machine.
pub(crate) const REAL_IO: Duration = Duration::from_secs(1);

pub(crate) struct World<H: Harness> {
    pub(crate) world: H,
    /// This store does not wait long for a holder that is stopped inside a transaction.
    pub(crate) store: FencedStore<H::Db>,
    /// How many deposits were acknowledged.
    pub(crate) deposits: Cell<i64>,
}

impl<H: Harness> World<H> {
    pub(crate) async fn new() -> Self {
        let world: H = fresh().await;
        Self {
            store: world.impatient().await,
            world,
            deposits: Cell::new(0),
        }
    }

    pub(crate) fn protected(&self, me: &Process) -> FencedLocks<H::Db> {
        FencedLocks::new(me.locks().clone(), self.store.clone())
    }

    async fn add_to(&self, before: i64) -> Result<(), FencedLockError> {
        let now = H::balance(&mut *to_read(&self.store).await?).await;
        // Sets the balance to the value that was read, plus one.
        H::add_unfenced(&self.store, before + 1 - now).await?;
        Ok(())
    }

    pub(crate) async fn balance_is_that_of_the_deposits(&self) -> bool {
        balance(&self.world).await == 100 + self.deposits.get()
    }
}

/// A deposit: reads the balance, and sets it to one more.
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

/// The control: the same deposit under the lease alone.
pub(crate) async fn an_unfenced_deposit_that_is_stopped_loses_another<H: Harness>() {
    let unfenced = async |bank: &World<H>, me: &Process| {
        let guard = me.locks().acquire("account:42").await?;
        let before = balance(&bank.world).await;
        bank.add_to(before).await?;
        bank.deposits.set(bank.deposits.get() + 1);
        guard.release().await?;
        Ok::<_, FencedLockError>(())
    };
    // If an answer is there at once, there is no await. So not every try stops the deposit half
    // way.
    for _ in 0..20 {
        let test = pause::at_every_await(World::<H>::new, unfenced).real_io(REAL_IO);
        let broken = test.try_check(World::balance_is_that_of_the_deposits).await;
        if broken.is_err() {
            return;
        }
    }
    panic!("the control has to lose what the fence keeps");
}

/// Makes a test of each case. A test has one thread, because the simulated stop needs that.
macro_rules! pause_cases {
    ($harness:ty) => {
        pause_cases!($harness:
            a_deposit_that_is_stopped_anywhere_loses_nothing,
            an_unfenced_deposit_that_is_stopped_loses_another,
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
