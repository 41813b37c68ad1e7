//! A lease that is ended by force, and the writes that its holder can still make.

use std::{sync::Arc, time::Duration};

use fenced_store::FencedLocks;
use lock_core::{
    ForceReleased, InitialToken, LockManager, Operation, ResourceName, Ttl,
    backend::{Runtime, TokioRuntime},
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, Gate, Until};
use sqlx::Sqlite;

use crate::{
    file::SqliteFile,
    rule::{Harness, assert_kind, at_every_await, balance, fenced_add, fresh, high_water},
};

const NAME: &str = "account:42";

fn resource() -> ResourceName {
    ResourceName::new(NAME).unwrap()
}

async fn protected() -> (SqliteFile, FencedLocks<Sqlite>) {
    let world: SqliteFile = fresh().await;
    let locks = palisade::connect("memory:").await.unwrap();
    let protected = FencedLocks::new(locks, world.store().clone());
    (world, protected)
}

/// The control: if only the lease is ended, the holder still writes, and unfenced writes go on.
#[tokio::test]
async fn force_shuts_a_holder_out_at_once_without_another_acquire() {
    let (world, accounts) = protected().await;
    let hung = accounts.acquire(NAME).await.unwrap();
    let ended = accounts.locks().force_release(&resource()).await.unwrap();
    assert!(matches!(ended, ForceReleased::Ended { .. }), "{ended:?}");
    assert!(hung.remaining().is_ok(), "it does not know yet");
    fenced_add(&world, hung.sequencer()).await.unwrap();
    assert_eq!(balance(&world).await, 101, "the store did not know either");
    drop(hung);

    let hung = accounts.acquire(NAME).await.unwrap();
    let forced = accounts.force_release(&resource()).await.unwrap();
    let ForceReleased::Ended { holder, revocation } = forced else {
        panic!("it was held");
    };
    assert_eq!(holder.token, hung.token());
    assert_eq!(high_water(&world, NAME).await, Some(revocation.get()));
    assert!(hung.remaining().is_ok(), "it does not know yet");
    let error = hung.begin().await.unwrap_err();
    assert_kind!(error, Stale);
    let error = fenced_add(&world, hung.sequencer()).await.unwrap_err();
    assert!(error.is_fenced(), "{error:?}");
    let replayed = world.store().claim(hung.sequencer()).await.unwrap_err();
    assert_kind!(replayed, Stale);
    assert_eq!(balance(&world).await, 101);

    let mut unfenced = world.store().pool().acquire().await.unwrap();
    SqliteFile::add(&mut unfenced, 1).await.unwrap();
    drop(unfenced);
    assert_eq!(balance(&world).await, 102, "the control lost nothing");
}

/// Catches: several guards that notice only the loss of the first guard.
#[tokio::test]
async fn several_guards_are_lost_with_any_of_them() {
    let (_world, accounts) = protected().await;
    let guards = accounts.acquire_all(["account:41", NAME], Duration::ZERO);
    let guards = guards.await.unwrap();
    accounts.locks().force_release(&resource()).await.unwrap();
    guards[1].renew(Ttl::secs(10)).await.unwrap_err();
    assert_eq!(guards.lost().await.resource(), &resource());
    guards.remaining().unwrap_err();
    guards[0].remaining().unwrap();
}

#[tokio::test]
async fn the_next_holder_is_not_shut_out_though_it_claims_before_the_revocation() {
    let world: SqliteFile = fresh().await;
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let service = MemoryBackend::new(Arc::clone(&runtime), InitialToken::Clock);
    let chaos = Chaos::new(Arc::new(service), runtime);
    let locks = LockManager::builder().build(chaos.clone());
    let accounts = FencedLocks::new(locks.unwrap(), world.store().clone());

    let hung = accounts.acquire(NAME).await.unwrap();
    let (answered, name) = (Gate::closed(), resource());
    let late = Fault::DelayReply(Until::Opened(answered.clone()));
    chaos.next(Operation::ForceRelease, late);
    let (forced, next) = tokio::join!(accounts.force_release(&name), async {
        answered.arrival().await;
        let next = accounts.acquire(NAME).await.unwrap();
        answered.open();
        next
    });
    assert!(matches!(forced.unwrap(), ForceReleased::Ended { .. }));
    let mark = high_water(&world, NAME).await;
    assert_eq!(mark, Some(next.token().get()));
    fenced_add(&world, next.sequencer()).await.unwrap();
    assert!(hung.begin().await.unwrap_err().is_fenced());
}

/// Force waits for a transaction that began before, and the holder can begin no other one.
#[tokio::test]
async fn force_waits_for_a_transaction_that_is_open_and_lets_no_other_begin() {
    let (world, accounts) = protected().await;
    let hung = accounts.acquire(NAME).await.unwrap();
    let mut open = hung.begin().await.unwrap();
    SqliteFile::add(&mut open, 1).await.unwrap();
    let commit_once_it_waits = async {
        while accounts
            .locks()
            .inspect(&resource())
            .await
            .unwrap()
            .holder
            .is_some()
        {
            tokio::task::yield_now().await;
        }
        open.commit().await.unwrap();
    };
    let (forced, ()) = tokio::join!(
        async { accounts.force_release(&resource()).await },
        commit_once_it_waits
    );
    assert!(matches!(forced.unwrap(), ForceReleased::Ended { .. }));
    assert!(hung.begin().await.unwrap_err().is_fenced());
    assert_eq!(balance(&world).await, 101);
}

/// Catches: a mark for every name that an operator mistypes.
#[tokio::test]
async fn force_on_a_name_that_was_never_claimed_leaves_nothing() {
    let (world, accounts) = protected().await;
    let forced = accounts.force_release(&resource()).await.unwrap();
    assert_eq!(forced, ForceReleased::NotHeld);
    assert_eq!(high_water(&world, NAME).await, None);
}

/// Each call fails as long as a transaction of the holder is open.
#[tokio::test]
async fn force_may_be_repeated_until_the_holders_transaction_has_ended() {
    let (world, accounts) = protected().await;
    let impatient = FencedLocks::new(accounts.locks().clone(), world.impatient().await);
    let hung = accounts.acquire(NAME).await.unwrap();
    let open = hung.begin().await.unwrap();
    for _ in 0..2 {
        let busy = impatient.force_release(&resource()).await.unwrap_err();
        let busy = format!("{busy:?}");
        assert!(busy.starts_with("Store(Busy"), "{busy}");
    }
    // The lease was ended, and the store does not know it.
    open.commit().await.unwrap();
    let forced = impatient.force_release(&resource()).await.unwrap();
    assert_eq!(forced, ForceReleased::NotHeld);
    let seen = accounts.locks().inspect(&resource()).await.unwrap();
    assert!(seen.holder.is_none(), "it is given back: {seen:?}");
    assert!(
        fenced_add(&world, hung.sequencer())
            .await
            .unwrap_err()
            .is_fenced()
    );
}

/// Catches: a lease of the operator that is not given back.
#[tokio::test]
async fn force_that_is_dropped_at_any_await_leaves_a_resource_that_can_be_had() {
    let (world, accounts) = protected().await;
    at_every_await(async |at| {
        let hung = accounts.acquire(NAME).await.unwrap();
        let name = resource();
        let completed = at.poll(accounts.force_release(&name)).await.is_some();
        let stale = hung.sequencer().clone();
        hung.release().await.unwrap();
        let next = accounts.acquire(NAME).await.unwrap();
        assert!(world.store().begin(&stale).await.unwrap_err().is_fenced());
        fenced_add(&world, next.sequencer()).await.unwrap();
        next.release().await.unwrap();
        completed
    })
    .await;
}
