//! Futures that are dropped. Each time the pool has one connection, whose next user finds
//! everything that was left behind.

use std::time::Duration;

use e2e::{
    proxy::Fault,
    servers::{MySqlServer, until},
};
use fenced_jobs::{JobOutcome, Jobs};
use fenced_store::{
    FenceError, FencedLockError, FencedLocks, FencedStore, FencedTx, MySqlFencedStore,
};
use futures_util::future::join_all;
use lock_core::Sequencer;
use lock_testing::DropAt;
use sqlx::{
    AssertSqlSafe, Connection, Executor, MySql, MySqlConnection, MySqlPool, Row as _,
    mysql::MySqlPoolOptions,
};
use tokio::time::timeout;

use crate::{
    mysql::server::{MySqlStore, on},
    rule::{Harness, balance, claimed, service},
};

/// A time limit. A statement that takes longer never ends.
const PATIENCE: Duration = Duration::from_secs(30);

async fn with_one_connection<S: MySqlServer>() -> (MySqlStore<S>, MySqlFencedStore, Sequencer) {
    let (world, grant) = claimed::<MySqlStore<S>>().await;
    let store = FencedStore::new(world.pool_of_one().await);
    (world, store, grant)
}

async fn add_unfenced<S: MySqlServer>(pool: &MySqlPool) {
    MySqlStore::<S>::add(&mut pool.acquire().await.unwrap(), 1)
        .await
        .unwrap();
}

async fn add_fenced<S: MySqlServer>(store: &MySqlFencedStore, grant: &Sequencer) {
    let mut tx = store.begin(grant).await.unwrap();
    MySqlStore::<S>::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
}

/// The control. sqlx forgets the transaction that it has begun, and the writes that follow are lost
/// when its session ends.
async fn naive_begin_that_is_dropped_loses_the_next_write<S: MySqlServer>() {
    let (world, store, _) = with_one_connection::<S>().await;
    let pool = store.pool();
    let mut connection = pool.acquire().await.unwrap();
    while DropAt::woken(1).poll(connection.begin()).await.is_some() {
        // The transaction was begun, and is rolled back here.
        connection.ping().await.unwrap();
    }
    drop(connection);
    add_unfenced::<S>(pool).await;
    let connection = pool.acquire().await.unwrap();
    assert!(!connection.is_in_transaction(), "as far as sqlx knows");
    connection.detach().close_hard().await.unwrap();
    assert_eq!(balance(&world).await, 100, "the update said Ok and is gone");
}

/// Statements that are all different, with parameters and, if they read, columns.
struct Statements {
    made: usize,
}

impl Statements {
    const fn new() -> Self {
        Self { made: 0 }
    }

    /// Every kind of statement whose preparation is answered in another number of packets.
    fn kinds() -> impl Iterator<Item = (usize, bool)> {
        (0..=6).flat_map(|parameters| [(parameters, false), (parameters, true)])
    }

    /// Executes a statement, and drops it at a moment. Returns whether it was dropped.
    async fn dropped(
        &mut self,
        connection: &mut MySqlConnection,
        (parameters, reads): (usize, bool),
        at: DropAt,
    ) -> bool {
        self.made += 1;
        let what = if reads {
            "SELECT id, balance FROM accounts"
        } else {
            "UPDATE accounts SET balance = 0"
        };
        let ids = ", ?".repeat(parameters);
        let text = format!("{what} WHERE id IN (-1{ids}) -- statement {}", self.made);
        let query = sqlx::query(AssertSqlSafe(text));
        let query = (0..parameters).fold(query, |query, _| query.bind(-2));
        at.poll(query.execute(connection)).await.is_none()
    }
}

/// The control: the pool never gets its connection back.
async fn naive_statement_that_is_dropped_while_it_is_prepared_costs_a_connection<S: MySqlServer>() {
    let (world, _, _) = with_one_connection::<S>().await;
    let pool = MySqlPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(2));
    let pool = pool.connect(world.url()).await.unwrap();
    let mut statements = Statements::new();
    // If the statement is prepared at once, its first await is the one of its execution, or it has
    // no await.
    for _ in 0..5000 {
        let mut tx = match pool.begin().await {
            Ok(tx) => tx,
            Err(sqlx::Error::PoolTimedOut) => return,
            Err(error) => panic!("{error}"),
        };
        statements
            .dropped(&mut tx, (6, false), DropAt::waiting(1))
            .await;
    }
    panic!("the pool has its connection still");
}

/// The control for reads. If it fails, sqlx was mended: see "What does not hold" of MySQL.
async fn naive_read_after_a_dropped_statement_returns_a_part_of_its_preparation<S: MySqlServer>() {
    let (_world, store, grant) = with_one_connection::<S>().await;
    let mut statements = Statements::new();
    for _ in 0..20 {
        let mut tx = store.begin(&grant).await.unwrap();
        statements
            .dropped(&mut tx, (6, true), DropAt::waiting(1))
            .await;
        let read = tx.fetch_one(sqlx::raw_sql("SELECT 'right', '', ''")).await;
        let text: String = read.unwrap().try_get_unchecked(0).unwrap();
        if text != "right" {
            assert_eq!(text, "def");
            return drop(tx.rollback().await);
        }
    }
    panic!("each read was right");
}

/// The ways to end a transaction in which a statement was dropped.
#[derive(Clone, Copy, Debug)]
enum End {
    Drop,
    RollBack,
    Commit,
}

/// Ends the transaction. Returns whether its write must be stored, if this is known.
async fn end(tx: FencedTx<MySql>, end: End) -> Option<bool> {
    match end {
        End::Drop => drop(tx),
        End::RollBack => drop(tx.rollback().await),
        End::Commit => match tx.commit().await {
            Ok(_) => return Some(true),
            Err(FenceError::CommitUnknown { .. }) => return None,
            Err(FenceError::Db { .. }) => {}
            Err(error) => panic!("{error:?}"),
        },
    }
    Some(false)
}

/// Checks that the connection can be used, or was replaced, and that the write is stored or not, as
/// expected.
async fn goes_on<S: MySqlServer>(
    (world, store, grant): &(MySqlStore<S>, MySqlFencedStore, Sequencer),
    before: i64,
    is_stored: Option<bool>,
) {
    add_unfenced::<S>(store.pool()).await;
    add_fenced::<S>(store, grant).await;
    let added = balance(world).await - before - 2;
    match is_stored {
        Some(true) => assert_eq!(added, 1000),
        Some(false) => assert_eq!(added, 0),
        None => assert!([0, 1000].contains(&added), "{added}"),
    }
}

async fn a_statement_that_is_dropped_while_it_is_prepared_costs_no_connection<S: MySqlServer>() {
    let fenced = with_one_connection::<S>().await;
    let (world, store, grant) = &fenced;
    let (mut statements, mut dropped) = (Statements::new(), 0);
    for kind in Statements::kinds() {
        for at in [DropAt::waiting(1), DropAt::woken(1)] {
            for way in [End::Drop, End::RollBack, End::Commit] {
                let before = balance(world).await;
                let mut tx = store.begin(grant).await.unwrap();
                MySqlStore::<S>::add(&mut tx, 1000).await.unwrap();
                dropped += usize::from(statements.dropped(&mut tx, kind, at).await);
                let stored = timeout(PATIENCE, end(tx, way)).await;
                let stored = stored.unwrap_or_else(|_| panic!("no end: {kind:?} {at:?} {way:?}"));
                goes_on(&fenced, before, stored).await;
            }
        }
    }
    assert!(dropped > statements.made / 2, "{dropped}");
}

/// More than one statement is dropped. Then the driver waits for an answer that never comes.
async fn statements_that_are_dropped_one_after_the_other_cost_no_connection<S: MySqlServer>() {
    each_way_at_once(async |way| {
        let fenced = with_one_connection::<S>().await;
        let (world, store, grant) = &fenced;
        let mut statements = Statements::new();
        let before = balance(world).await;
        let mut tx = store.begin(grant).await.unwrap();
        MySqlStore::<S>::add(&mut tx, 1000).await.unwrap();
        for _ in 0..3 {
            let step = statements.dropped(&mut tx, (6, true), DropAt::woken(1));
            // The second statement waits for ever.
            timeout(Duration::from_millis(200), step).await.ok();
        }
        let stored = timeout(PATIENCE, end(tx, way)).await.expect("an end");
        goes_on(&fenced, before, stored).await;
    })
    .await;
}

/// Runs the test for each way to end, side by side, in databases of their own, because some ends
/// wait seconds for the server.
async fn each_way_at_once(test: impl AsyncFn(End)) {
    tokio::join!(test(End::Drop), test(End::RollBack), test(End::Commit));
}

/// The answer comes while the end of the transaction waits for it, or it never comes.
async fn a_preparation_that_is_answered_late_or_never_costs_no_connection<S: MySqlServer>() {
    each_way_at_once(async |way| {
        let (world, _, grant) = with_one_connection::<S>().await;
        let (proxy, store) = world.behind_a_proxy().await;
        let fenced = (world, store, grant);
        let (world, store, grant) = &fenced;
        let mut statements = Statements::new();
        for comes in [true, false] {
            let before = balance(world).await;
            let mut tx = store.begin(grant).await.unwrap();
            MySqlStore::<S>::add(&mut tx, 1000).await.unwrap();
            let prepared = proxy.at_request("-- statement", Fault::HoldReplies);
            let dropped = statements.dropped(&mut tx, (5, true), DropAt::waiting(1));
            assert!(dropped.await);
            until("the server has it", async || prepared.has_sprung()).await;
            let late = async {
                tokio::task::yield_now().await;
                if comes {
                    proxy.let_go();
                }
            };
            let both = async { tokio::join!(end(tx, way), late) };
            let (stored, ()) = timeout(PATIENCE, both).await.expect("an end");
            assert_eq!(stored, Some(false), "{way:?}: the commit was not sent");
            goes_on(&fenced, before, stored).await;
        }
    })
    .await;
}

/// Catches: a savepoint that takes the answers to another statement for its own, and so waits for
/// ever or panics.
async fn a_savepoint_after_a_statement_that_was_dropped_while_it_was_prepared_is_set_or_fails<
    S: MySqlServer,
>() {
    // The unread parts of the preparations have 8, 4 and 1 packets.
    let failed = [(6, true), (2, true), (1, false)].map(async |kind| {
        let fenced = with_one_connection::<S>().await;
        let (world, store, grant) = &fenced;
        let (mut statements, mut failed) = (Statements::new(), 0);
        for at in [DropAt::waiting(1), DropAt::woken(1)] {
            let before = balance(world).await;
            let mut tx = store.begin(grant).await.unwrap();
            MySqlStore::<S>::add(&mut tx, 1000).await.unwrap();
            statements.dropped(&mut tx, kind, at).await;
            let set = async { tx.begin().await?.commit().await };
            let set = timeout(PATIENCE, set).await;
            match set.unwrap_or_else(|_| panic!("no end: {kind:?} {at:?}")) {
                Ok(()) => {}
                Err(FenceError::Db { .. }) => failed += 1,
                Err(error) => panic!("{error:?}"),
            }
            drop(tx);
            goes_on(&fenced, before, Some(false)).await;
        }
        failed
    });
    let failed: usize = join_all(failed).await.into_iter().sum();
    assert!(failed > 0, "no savepoint came after a dropped statement");
}

/// The driver waits for the answer, and none of our calls can notice this.
async fn an_idle_timeout_ends_a_statement_whose_answer_never_comes<S: MySqlServer>() {
    let (world, grant) = claimed::<MySqlStore<S>>().await;
    let store = world
        .store_after(on::<S, _>(
            "SET SESSION idle_transaction_timeout = 2",
            "SET SESSION wait_timeout = 2",
        ))
        .await;
    let fenced = (world, store, grant);
    let (world, store, grant) = &fenced;
    let mut statements = Statements::new();
    for _ in 0..20 {
        let before = balance(world).await;
        let mut tx = store.begin(grant).await.unwrap();
        MySqlStore::<S>::add(&mut tx, 1000).await.unwrap();
        statements
            .dropped(&mut tx, (6, true), DropAt::waiting(1))
            .await;
        let next = timeout(PATIENCE, tx.execute(sqlx::raw_sql("SET @next = 1"))).await;
        let ended = next.expect("an end").is_err_and(|error| match error {
            sqlx::Error::Io(_) => true,
            // MySQL reports the reason before it closes the connection.
            error => error.to_string().contains("inactivity"),
        });
        if ended {
            assert!(tx.commit().await.is_err());
            return goes_on(&fenced, before, Some(false)).await;
        }
    }
    panic!("no answer was missing");
}

/// Catches: a step of a job whose result is written with the answers to another statement.
async fn a_step_in_which_a_statement_was_dropped_while_it_was_prepared_is_stored_or_fails<
    S: MySqlServer,
>() {
    // The unread parts of the preparations have 3, 4 and 8 packets.
    let failed = [1, 2, 6].map(async |parameters| {
        let (world, store, _) = with_one_connection::<S>().await;
        let locks = FencedLocks::new(service("redis"), store);
        let (mut statements, mut failed) = (Statements::new(), 0);
        for drops in [false, true, true] {
            let (before, statements) = (balance(&world).await, &mut statements);
            let once = locks.once("night", format!("invoice:{}", statements.made));
            let steps = once.steps(async |job| {
                job.step(async |tx| {
                    MySqlStore::<S>::add(&mut *tx, 1000).await?;
                    let at = DropAt::woken(if drops { 1 } else { usize::MAX });
                    statements.dropped(&mut *tx, (parameters, true), at).await;
                    Ok::<_, FencedLockError>(())
                })
                .await
            });
            let ran = timeout(PATIENCE, steps).await;
            let ran = ran.unwrap_or_else(|_| panic!("no end: {parameters}"));
            let added = balance(&world).await - before;
            match ran {
                Ok(JobOutcome::Ran(..)) => assert_eq!(added, 1000),
                Err(FencedLockError::Store(FenceError::Db { .. })) => {
                    assert_eq!(added, 0);
                    failed += 1;
                }
                ran => panic!("{ran:?}"),
            }
        }
        failed
    });
    let failed: usize = join_all(failed).await.into_iter().sum();
    assert!(failed > 0, "no step had a dropped statement");
}

/// Catches: a header that was read without its packet, after which all answers are out of step.
async fn a_read_that_is_dropped_in_the_middle_of_an_answer_costs_no_connection<S: MySqlServer>() {
    each_way_at_once(async |way| {
        let fenced = with_one_connection::<S>().await;
        let (world, store, grant) = &fenced;
        let mut dropped = 0;
        for number in [1, 5, 20, 40] {
            let before = balance(world).await;
            let mut tx = store.begin(grant).await.unwrap();
            MySqlStore::<S>::add(&mut tx, 1000).await.unwrap();
            let long = sqlx::raw_sql("SELECT REPEAT('a', 15000000)");
            let read = DropAt::woken(number).poll(tx.fetch_all(long)).await;
            dropped += usize::from(read.is_none());
            let stored = timeout(PATIENCE, end(tx, way)).await.expect("an end");
            goes_on(&fenced, before, stored).await;
        }
        assert!(dropped > 0, "no read was dropped");
    })
    .await;
}

on_both!(
    naive_begin_that_is_dropped_loses_the_next_write,
    naive_statement_that_is_dropped_while_it_is_prepared_costs_a_connection,
    naive_read_after_a_dropped_statement_returns_a_part_of_its_preparation,
    a_statement_that_is_dropped_while_it_is_prepared_costs_no_connection,
    statements_that_are_dropped_one_after_the_other_cost_no_connection,
    a_preparation_that_is_answered_late_or_never_costs_no_connection,
    a_savepoint_after_a_statement_that_was_dropped_while_it_was_prepared_is_set_or_fails,
    an_idle_timeout_ends_a_statement_whose_answer_never_comes,
    a_step_in_which_a_statement_was_dropped_while_it_was_prepared_is_stored_or_fails,
    a_read_that_is_dropped_in_the_middle_of_an_answer_costs_no_connection,
);
