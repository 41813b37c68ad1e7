//! Cases for databases with a server: sessions that can be ended, by a claim and by others.
#![expect(clippy::future_not_send, reason = "each test is one thread")]

use e2e::counted::times;
use fenced_store::{FenceError, FencedStore, Rights};
use lock_core::backend::metric::TERMINATIONS;
use metrics_util::debugging::DebuggingRecorder;

pub(crate) use crate::rule::a_pool_full_of_strays_is_cleared;
use crate::rule::{
    SqlHarness, WrongBooks, assert_kind, balance, claimed, fenced_add, fresh, grant, high_water,
};

pub(crate) trait Server: SqlHarness {
    /// A statement that changes the issuer, as the beginning of a seal.
    const SEAL: &'static str;

    /// A store whose claims end the sessions of older holders as soon as the server can.
    fn ending(&self) -> FencedStore<Self::Db>;

    /// Ends the session of a connection, as an administrator does.
    async fn end_session(&self, connection: &mut <Self::Db as sqlx::Database>::Connection);
}

pub(crate) async fn an_older_holder_is_ended_and_gets_an_error<S: Server>() {
    let recorder = DebuggingRecorder::new();
    let _local = metrics::set_default_local_recorder(&recorder);
    let world: S = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let store = world.ending();
    store.claim(&old).await.unwrap();
    let mut open = store.begin(&old).await.unwrap();
    S::add(&mut open, 1).await.unwrap();
    store.claim(&new).await.unwrap();

    let error: FenceError = S::add(&mut open, 1).await.unwrap_err();
    // MariaDB may close the connection before it reports the reason.
    assert!(
        matches!(error, FenceError::Terminated { .. } | FenceError::Db { .. }),
        "{error:?}"
    );
    assert!(!error.is_fenced() && !error.is_retryable());
    open.commit().await.unwrap_err();
    assert_eq!(balance(&world).await, 100);
    // If the end of a session takes long, a claim may order it twice.
    assert_ne!(times(&recorder, &TERMINATIONS), 0);
    // Connections that were closed are replaced.
    fenced_add(&world, &new).await.unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(34));
}

/// Sessions in a transaction of another resource, or in no fenced transaction, go on. A claim that
/// is refused, or that is repeated, ends no session at all.
pub(crate) async fn a_claim_ends_no_other_session<S: Server>() {
    let world: S = fresh().await;
    let store = world.ending();
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let (other, live) = (grant("account:43", 7), grant("account:42", 35));
    store.claim(&old).await.unwrap();
    store.claim(&other).await.unwrap();

    let tx = store.begin(&old).await.unwrap();
    let bystander = store.begin(&other).await.unwrap();
    let unfenced = store.pool().begin().await.unwrap();
    store.claim(&new).await.unwrap();
    tx.commit().await.unwrap_err();
    bystander.commit().await.unwrap();
    unfenced.commit().await.unwrap();

    let tx = store.begin(&new).await.unwrap();
    assert!(store.claim(&old).await.unwrap_err().is_fenced());
    // The claim waits for its holder's own transactions, because otherwise it would end those of a
    // live holder.
    let busy = store.claim(&new).await.unwrap_err();
    assert_kind!(busy, Busy);
    tx.commit().await.unwrap();
    store.claim(&live).await.unwrap();
}

/// During a seal that does not end, a claim waits for the issuer and not for the older holder, who
/// might be about to commit.
pub(crate) async fn a_claim_that_waits_behind_a_seal_ends_no_session<S: Server>() {
    let world: S = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let store = world.ending();
    store.claim(&old).await.unwrap();
    let mut open = store.begin(&old).await.unwrap();
    let mut seal = store.pool().begin().await.unwrap();
    S::execute(&mut seal, S::SEAL).await.unwrap();
    let busy = store.claim(&new).await.unwrap_err();
    assert_kind!(busy, Busy);
    seal.rollback().await.unwrap();
    S::add(&mut open, 1).await.unwrap();
    open.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);

    // Without the seal, the claim waits for the holder and ends it.
    let open = store.begin(&old).await.unwrap();
    store.claim(&new).await.unwrap();
    open.commit().await.unwrap_err();
}

/// The answer to the commit is lost, so it is not known whether it happened.
pub(crate) async fn a_commit_without_an_answer_is_unknown<S: Server>() {
    let (world, grant) = claimed::<S>().await;
    let mut tx = world.store().begin(&grant).await.unwrap();
    S::add(&mut tx, 1).await.unwrap();
    world.end_session(&mut tx).await;
    let error = tx.commit().await.unwrap_err();
    assert_kind!(error, CommitUnknown);
    assert!(!error.is_retryable(), "a blind retry could do it twice");
    world.store().settle(&grant).await.unwrap();
    assert_eq!(balance(&world).await, 100);
}

/// A store of a role that may create nothing returns an error about wrong migrations, and their
/// owner mends them.
pub(crate) async fn wrong_books_are_an_error<S: Server>(
    store: &FencedStore<S::Db>,
    as_owner: impl AsyncFn(&'static str),
) {
    as_owner(WrongBooks::keep::<S>()).await;
    for wrong in WrongBooks::all::<S>() {
        store.migrate().await.unwrap();
        as_owner(wrong.make).await;
        wrong.assert_told(store.check(Rights::Write).await);
        wrong.assert_told(store.migrate().await);
        for statement in WrongBooks::undo::<S>() {
            as_owner(statement).await;
        }
    }
}

/// The cases run on one thread, because the counting of metrics needs this.
macro_rules! server_cases {
    ($server:ty) => {
        server_cases!($server:
            an_older_holder_is_ended_and_gets_an_error,
            a_claim_ends_no_other_session,
            a_claim_that_waits_behind_a_seal_ends_no_session,
            a_commit_without_an_answer_is_unknown,
            a_pool_full_of_strays_is_cleared,
        );
    };
    ($server:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                $crate::servers::$case::<$server>().await;
            }
        )*
    };
}
pub(crate) use server_cases;
