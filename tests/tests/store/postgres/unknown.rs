//! Commits whose answer got lost, and their outcome after `settle`.

use e2e::{
    proxy::{Fault, Proxy, Trap},
    servers::until,
};
use fenced_store::{FenceError, FencedTx, PgFencedStore, Receipt};
use lock_core::Sequencer;
use sqlx::Postgres;

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, balance, fenced_add, fresh, grant},
    servers::Server,
};

/// The text of the message that commits.
const COMMIT: &str = "COMMIT AND CHAIN";

/// A holder that reaches the database through a proxy.
struct Holder {
    world: PostgresServer,
    proxy: Proxy,
    grant: Sequencer,
    store: PgFencedStore,
}

impl Holder {
    async fn new() -> Self {
        let world: PostgresServer = fresh().await;
        let (proxy, store) = world.behind_a_proxy().await;
        let grant = grant("account:42", 33);
        store.claim(&grant).await.unwrap();
        Self {
            world,
            proxy,
            grant,
            store,
        }
    }

    /// Adds 1 in a transaction that is about to be committed when the fault happens.
    async fn about_to_commit(&self, fault: Fault) -> (FencedTx<Postgres>, Trap) {
        let mut tx = self.store.begin(&self.grant).await.unwrap();
        PostgresServer::add(&mut tx, 1).await.unwrap();
        (tx, self.proxy.at_request(COMMIT, fault))
    }

    /// Settles by a direct connection.
    async fn settle(&self) -> Result<(), FenceError> {
        self.world.impatient().await.settle(&self.grant).await
    }

    /// A commit that waits in the network after its caller has given up.
    async fn commit_that_is_on_its_way(&self) {
        let (tx, held) = self.about_to_commit(Fault::HoldRequests).await;
        let (held, commit) = (&held, tx.commit());
        tokio::select! {
            committed = commit => panic!("{committed:?}"),
            () = until("the commit is under way", async || held.has_sprung()) => {}
        }
    }
}

fn assert_unknown<T: std::fmt::Debug>(committed: Result<T, FenceError>) {
    let error = committed.unwrap_err();
    assert_kind!(error, CommitUnknown);
    assert!(!error.is_retryable(), "a blind retry could do it twice");
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_has_happened_when_it_is_settled() {
    let holder = Holder::new().await;
    let (tx, lost) = holder.about_to_commit(Fault::DropReplies).await;
    let cut = async {
        until("the commit has happened", async || {
            balance(&holder.world).await == 101
        })
        .await;
        holder.proxy.inflict(Fault::Cut);
    };
    let (committed, ()) = tokio::join!(tx.commit(), cut);
    assert!(lost.has_sprung());
    assert_unknown(committed);
    holder.settle().await.unwrap();
    assert_eq!(balance(&holder.world).await, 101);
}

#[tokio::test]
async fn a_commit_that_never_arrived_has_not_happened_when_it_is_settled() {
    let holder = Holder::new().await;
    let (tx, lost) = holder.about_to_commit(Fault::Reset).await;
    assert_unknown(tx.commit().await);
    assert!(lost.has_sprung());
    holder.world.store().settle(&holder.grant).await.unwrap();
    assert_eq!(balance(&holder.world).await, 100);
    fenced_add(&holder.world, &holder.grant).await.unwrap();
    assert_eq!(balance(&holder.world).await, 101);
}

#[tokio::test]
async fn a_commit_that_is_still_on_its_way_is_waited_for_by_settling() {
    let holder = Holder::new().await;
    holder.commit_that_is_on_its_way().await;
    assert_eq!(
        balance(&holder.world).await,
        100,
        "as if it had not happened"
    );
    let busy = holder.settle().await.unwrap_err();
    assert_kind!(busy, Busy);

    holder.proxy.let_go();
    holder.world.store().settle(&holder.grant).await.unwrap();
    assert_eq!(balance(&holder.world).await, 101);
}

/// The control: a look at the data, without settling first.
#[tokio::test]
async fn naive_retry_of_a_commit_that_is_still_on_its_way_does_it_twice() {
    let holder = Holder::new().await;
    holder.commit_that_is_on_its_way().await;
    assert_eq!(balance(&holder.world).await, 100, "so it is done once more");
    let arrive = async {
        // The retry waits for the row that the first transaction has changed.
        until("the retry is under way", async || {
            let waiting = "SELECT count(*) FROM pg_stat_activity
                WHERE wait_event_type = 'Lock' AND datname = current_database()";
            let waiting = sqlx::query_scalar::<_, i64>(waiting);
            waiting
                .fetch_one(holder.world.store().pool())
                .await
                .unwrap()
                == 1
        })
        .await;
        holder.proxy.let_go();
    };
    let (retried, ()) = tokio::join!(fenced_add(&holder.world, &holder.grant), arrive);
    retried.unwrap();
    assert_eq!(balance(&holder.world).await, 102);
}

/// The next holder's claim has waited for the commit, so no part of the commit is on its way any
/// more.
#[tokio::test]
async fn the_next_claim_settles_too() {
    let holder = Holder::new().await;
    holder.commit_that_is_on_its_way().await;
    let next = grant("account:42", 34);
    holder.world.ending().claim(&next).await.unwrap();
    holder.proxy.let_go();
    let stale = holder.settle().await.unwrap_err();
    assert_kind!(stale, Stale);
    assert_eq!(balance(&holder.world).await, 100);
}

/// Adds 1 to the balance by `transact`, whose first commit meets the fault.
async fn add_with(holder: &Holder, fault: Fault) -> Result<((), Receipt), FenceError> {
    let lost = holder.proxy.at_request(COMMIT, fault);
    let begin = holder.store.begin(&holder.grant);
    let added = begin.transact(async |tx| Ok(PostgresServer::add(&mut *tx, 1).await?));
    let cut = async {
        if fault == Fault::DropReplies {
            until("the commit has happened", async || {
                balance(&holder.world).await == 101
            })
            .await;
            holder.proxy.inflict(Fault::Cut);
        }
    };
    let (added, ()) = tokio::join!(added, cut);
    assert!(lost.has_sprung());
    added
}

/// The outcome of the commit cannot be known. So the commit is not repeated, whether or not it has
/// happened. It is settled: no part of it is under way any more.
#[tokio::test]
async fn a_commit_without_an_answer_stays_unknown_and_is_not_repeated() {
    for (fault, after) in [(Fault::DropReplies, 101), (Fault::Reset, 100)] {
        let holder = Holder::new().await;
        assert_unknown(add_with(&holder, fault).await);
        assert_eq!(balance(&holder.world).await, after, "{fault:?}");
    }
}
