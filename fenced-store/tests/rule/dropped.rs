//! Every operation is dropped at each of its awaits. The pool has one connection, so the next user
//! of the connection finds everything that was left behind.

use std::time::Duration;

use fenced_store::{FenceError, FencedStore, Protection};
use lock_core::Sequencer;
use lock_testing::DropAt;
use sqlx::Connection;
use tokio::time::timeout;

use super::{Harness, SqlHarness, assert_kind, balance, claimed, grant};

/// An operation that takes longer counts as one that never ends.
const PATIENCE: Duration = Duration::from_secs(25);

/// The most tries of a case.
const TRIES: usize = 100;
/// The number of tries in which an operation has to come to its end. One is not enough, because an
/// answer that is there at once leaves no await at which the future could be dropped.
const ENDS: usize = 3;

/// A future is dropped before its answer is there, and after.
const MOMENTS: [fn(usize) -> DropAt; 2] = [DropAt::waiting, DropAt::woken];

/// Runs a case that drops a future at one await after the other, at both moments. The case returns
/// true when the future has come to its end before that await. Returns the least number of awaits.
pub(crate) async fn at_every_await(mut case: impl AsyncFnMut(DropAt) -> bool) -> usize {
    let mut least = usize::MAX;
    for moment in MOMENTS {
        let (mut number, mut ends, mut is_over) = (1, 0, false);
        for _ in 0..TRIES {
            if !case(moment(number)).await {
                (number, ends) = (number + 1, 0);
            } else if number == 1 || ends < ENDS {
                ends += 1;
            } else {
                is_over = true;
                break;
            }
        }
        assert!(is_over, "the operation comes to its end in {TRIES} tries");
        assert!(
            number > 1,
            "the operation has an await at which it can be dropped"
        );
        least = least.min(number - 1);
    }
    least
}

struct World<H: Harness> {
    world: H,
    /// A store with one connection.
    store: FencedStore<H::Db>,
    /// A grant that was claimed.
    grant: Sequencer,
}

impl<H: SqlHarness> World<H> {
    async fn new() -> Self {
        let (world, grant) = claimed::<H>().await;
        let store = world.store_of_one().await;
        Self {
            world,
            store,
            grant,
        }
    }

    /// Checks that the connection is outside of any transaction: a single write on it is stored at
    /// once, and so is the write of a fenced transaction.
    async fn is_sound(&self, at: DropAt) {
        let mut connection = self.store.pool().acquire().await.unwrap();
        assert!(!connection.is_in_transaction(), "dropped {at:?}");
        let before = H::balance(&mut connection).await;
        H::add_by_itself(&mut connection, 1).await.unwrap();
        drop(connection);
        assert_eq!(balance(&self.world).await, before + 1, "dropped {at:?}");
        let mut tx = self.store.begin(&self.grant).await.unwrap();
        H::add(&mut tx, 1).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(balance(&self.world).await, before + 2, "dropped {at:?}");
    }

    /// Checks a write that adds 1000. If it was finished, it is stored. Otherwise it may be stored
    /// or not.
    async fn has_added_or_not(&self, before: i64, finished: bool, at: DropAt) {
        self.is_sound(at).await;
        let added = balance(&self.world).await - before;
        assert!(added == 1002 || added == 2 && !finished, "dropped {at:?}");
    }

    /// Checks that no lock is held any more.
    async fn is_free(&self) {
        let next = grant("account:42", 1_000_000);
        self.world.impatient().await.claim(&next).await.unwrap();
    }

    /// Runs a case that drops a future in a fresh world. Checks that nothing is left behind there.
    async fn at_every_await(mut case: impl AsyncFnMut(&Self, DropAt) -> bool) {
        let world = Self::new().await;
        at_every_await(async |at| {
            let finished = case(&world, at).await;
            world.is_sound(at).await;
            finished
        })
        .await;
        world.is_free().await;
    }
}

pub(crate) async fn begin_can_be_dropped_at_every_await<H: SqlHarness>() {
    World::<H>::at_every_await(async |world, at| {
        at.poll(world.store.begin(&world.grant)).await.is_some()
    })
    .await;
}

/// The commit has happened, or it has not.
pub(crate) async fn commit_can_be_dropped_at_every_await<H: SqlHarness>() {
    World::<H>::at_every_await(async |world, at| {
        let before = balance(&world.world).await;
        let mut tx = world.store.begin(&world.grant).await.unwrap();
        H::add(&mut tx, 1000).await.unwrap();
        let finished = at.poll(tx.commit()).await.is_some();
        world.has_added_or_not(before, finished, at).await;
        finished
    })
    .await;
}

pub(crate) async fn rollback_can_be_dropped_at_every_await<H: SqlHarness>() {
    World::<H>::at_every_await(async |world, at| {
        let before = balance(&world.world).await;
        let mut tx = world.store.begin(&world.grant).await.unwrap();
        H::add(&mut tx, 1000).await.unwrap();
        let finished = at.poll(tx.rollback()).await.is_some();
        world.is_sound(at).await;
        assert_eq!(balance(&world.world).await, before + 2, "dropped {at:?}");
        finished
    })
    .await;
}

/// The claim is finished, or was never sent. A repeated claim succeeds.
pub(crate) async fn claim_can_be_dropped_at_every_await<H: SqlHarness>() {
    let mut world = World::<H>::new().await;
    let mut token = 33;
    at_every_await(async |at| {
        token += 1;
        world.grant = grant("account:42", token);
        let finished = at.poll(world.store.claim(&world.grant)).await.is_some();
        world.store.claim(&world.grant).await.unwrap();
        world.is_sound(at).await;
        finished
    })
    .await;
    world.is_free().await;
}

pub(crate) async fn settle_can_be_dropped_at_every_await<H: SqlHarness>() {
    World::<H>::at_every_await(async |world, at| {
        at.poll(world.store.settle(&world.grant)).await.is_some()
    })
    .await;
}

pub(crate) async fn a_single_write_can_be_dropped_at_every_await<H: SqlHarness>() {
    World::<H>::at_every_await(async |world, at| {
        let before = balance(&world.world).await;
        let write = H::add_at_once(&world.store, &world.grant, 42, 1000);
        let finished = at.poll(write).await.is_some();
        world.has_added_or_not(before, finished, at).await;
        finished
    })
    .await;
}

/// A look at the mark leaves its connection outside of any transaction.
pub(crate) async fn high_water_can_be_dropped_at_every_await<H: SqlHarness>() {
    World::<H>::at_every_await(async |world, at| {
        let look = world.store.high_water(world.grant.resource());
        at.poll(look).await.is_some()
    })
    .await;
}

/// A statement of the application is dropped, and then its transaction is dropped or committed. The
/// commit says whether the statement is stored, together with the statement before it. If the
/// outcome is unknown, settling makes it final.
pub(crate) async fn a_statement_can_be_dropped_at_every_await<H: SqlHarness>() {
    let world = World::<H>::new().await;
    for commits in [false, true] {
        at_every_await(async |at| {
            let before = balance(&world.world).await;
            let mut tx = world.store.begin(&world.grant).await.unwrap();
            H::add(&mut tx, 100).await.unwrap();
            let finished = at.poll(H::add(&mut tx, 1000)).await.is_some();
            let committed = if commits {
                let committed = timeout(PATIENCE, tx.commit()).await;
                Some(committed.expect("an answer"))
            } else {
                drop(tx);
                None
            };
            if let Some(Err(FenceError::CommitUnknown { .. })) = committed {
                world.store.settle(&world.grant).await.unwrap();
            }
            let after = balance(&world.world).await;
            let is_stored = after != before;
            match &committed {
                Some(Ok(_)) => assert!(is_stored, "dropped {at:?}"),
                Some(Err(FenceError::CommitUnknown { .. })) => {}
                other => assert!(!is_stored, "dropped {at:?}: {other:?}"),
            }
            let added: &[i64] = match (is_stored, finished) {
                (true, true) => &[1100],
                (true, false) => &[100, 1100],
                (false, _) => &[0],
            };
            assert!(added.contains(&(after - before)), "dropped {at:?}");
            world.is_sound(at).await;
            assert_eq!(balance(&world.world).await, after + 2, "dropped {at:?}");
            finished
        })
        .await;
    }
    world.is_free().await;
}

/// The transaction goes on without the savepoint. If the end of the savepoint is dropped, the
/// transaction can only be rolled back.
pub(crate) async fn a_savepoint_can_be_dropped_at_every_await<H: SqlHarness>() {
    let world = World::<H>::new().await;
    at_every_await(async |at| {
        let mut tx = world.store.begin(&world.grant).await.unwrap();
        let finished = at.poll(tx.begin()).await.is_some();
        if !finished {
            H::add(&mut tx, 1).await.unwrap();
            tx.commit().await.unwrap();
        } else {
            drop(tx);
        }
        world.is_sound(at).await;
        finished
    })
    .await;
    for keeps in [true, false] {
        at_every_await(async |at| {
            let before = balance(&world.world).await;
            let mut tx = world.store.begin(&world.grant).await.unwrap();
            let mut savepoint = tx.begin().await.unwrap();
            H::add(&mut savepoint, 1000).await.unwrap();
            let finished = if keeps {
                at.poll(savepoint.commit()).await.is_some()
            } else {
                at.poll(savepoint.rollback()).await.is_some()
            };
            if !finished {
                let refused = tx.commit().await.unwrap_err();
                assert_kind!(refused, Aborted);
            } else {
                drop(tx);
            }
            world.is_sound(at).await;
            assert_eq!(balance(&world.world).await, before + 2, "dropped {at:?}");
            finished
        })
        .await;
    }
    world.is_free().await;
}

/// Afterwards the table is protected, or it is not. In both states the protection can be changed.
pub(crate) async fn protect_can_be_dropped_at_every_await<H: SqlHarness>() {
    let world = World::<H>::new().await;
    let rows = Protection::rows("accounts", "id", "account:").unwrap();
    at_every_await(async |at| {
        let finished = at.poll(world.store.protect(&rows)).await.is_some();
        world.store.protect(&rows).await.unwrap();
        let mut connection = world.store.pool().acquire().await.unwrap();
        let unfenced = H::add_by_itself(&mut connection, 1).await.unwrap_err();
        assert_kind!(unfenced, Unfenced);
        drop(connection);
        let unprotected = at.poll(world.store.unprotect(&rows)).await.is_some();
        world.store.unprotect(&rows).await.unwrap();
        world.is_sound(at).await;
        finished && unprotected
    })
    .await;
    assert_eq!(world.world.triggers().await, Vec::<String>::new());
}

pub(crate) async fn migrate_can_be_dropped_at_every_await<H: SqlHarness>() {
    for moment in MOMENTS {
        let world = H::unmigrated().await;
        let mut number = 1;
        while moment(number)
            .poll(world.to_migrate().migrate())
            .await
            .is_none()
        {
            number += 1;
        }
        assert!(number > 1, "it has an await at which it can be dropped");
        world.to_migrate().migrate().await.unwrap();
        let grant = grant("account:42", 33);
        world.store().claim(&grant).await.unwrap();
        super::fenced_add(&world, &grant).await.unwrap();
        assert_eq!(balance(&world).await, 101);
    }
}
