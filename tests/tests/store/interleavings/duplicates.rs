//! One token, two holders: a lock service that lost its state has issued it twice.

use std::time::Duration;

use e2e::servers::{MySqlServer, OnMariaDb, OnMySql};
use fenced_store::{FenceError, PgIsolation};
use lock_core::Sequencer;
use sqlx::sqlite::SqliteJournalMode;

use crate::{
    interleavings::{
        holder::grant, mysql::MySqlWorld, order::Who, postgres::OnPostgres, sqlite::OnSqlite,
        world::World,
    },
    rule::assert_kind,
};

async fn write<W: World>(world: &W, grant: &Sequencer) -> Result<(), FenceError> {
    let mut tx = world.store(Who::New).begin(grant).await?;
    let row = "INSERT INTO journal (run, who) VALUES (0, 0)".to_owned();
    W::execute(&mut tx, row).await?;
    tx.commit().await.map(drop)
}

/// The answer of a check of the token alone: the control.
async fn passes_by_number<W: World>(world: &W, grant: &Sequencer) -> bool {
    let mut connection = world.store(Who::New).pool().acquire().await.unwrap();
    let (marks, resource) = (W::MARKS, grant.resource());
    let mark = format!("SELECT token FROM {marks} WHERE resource = '{resource}'");
    let mark = W::number(&mut connection, mark).await.unwrap();
    i64::from(grant.token()) >= mark
}

async fn one_after_the_other<W: World>(world: &W) {
    let store = world.store(Who::New);
    let (first, second) = (grant(0, 5), grant(0, 5));
    for _ in 0..2 {
        store.claim(&first).await.unwrap();
        write(world, &first).await.unwrap();
    }
    assert!(
        passes_by_number(world, &second).await,
        "by its number it would pass"
    );
    let duplicate = |refused| match refused {
        Err(FenceError::DuplicateToken { presented, .. }) => presented == second.token(),
        _ => false,
    };
    assert!(duplicate(store.claim(&second).await));
    assert!(duplicate(write(world, &second).await));
    let older = store.claim(&grant(0, 4)).await.unwrap_err();
    assert_kind!(older, Stale);
    write(world, &first).await.unwrap();

    let newer = grant(0, 6);
    store.claim(&newer).await.unwrap();
    for late in [&first, &second, &grant(0, 6)] {
        assert!(store.claim(late).await.unwrap_err().is_fenced());
        assert!(write(world, late).await.unwrap_err().is_fenced());
    }
    write(world, &newer).await.unwrap();
}

/// Runs the test several times, because chance decides which holder is first.
async fn at_once<W: World>(world: &W) {
    for run in 1..=8 {
        let grants = [grant(run, 5), grant(run, 5)];
        let (one, other) = tokio::join!(
            world.store(Who::Stale).claim(&grants[0]),
            world.store(Who::New).claim(&grants[1]),
        );
        let winner = match (one, other) {
            (Ok(()), Err(FenceError::DuplicateToken { .. })) => 0,
            (Err(FenceError::DuplicateToken { .. }), Ok(())) => 1,
            both => panic!("{both:?}"),
        };
        write(world, &grants[winner]).await.unwrap();
        let refused = write(world, &grants[1 - winner]).await.unwrap_err();
        assert_kind!(refused, DuplicateToken);

        // The loser is also refused while the winner is in its transaction, and does not wait for
        // it.
        let open = world.store(Who::New).begin(&grants[winner]).await.unwrap();
        let refused = world.store(Who::Stale).claim(&grants[1 - winner]).await;
        assert!(
            matches!(refused, Err(FenceError::DuplicateToken { .. })),
            "{refused:?}"
        );
        open.commit().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_holders_of_one_token_only_the_first_to_claim_writes_to_postgres() {
    for level in [
        PgIsolation::ReadCommitted,
        PgIsolation::RepeatableRead,
        PgIsolation::Serializable,
    ] {
        let world = OnPostgres::new([level, level]).await;
        one_after_the_other(&world).await;
        at_once(&world).await;
    }
}

async fn only_the_first_to_claim_writes<S: MySqlServer>() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let world = MySqlWorld::<S>::new([level, level]).await;
        one_after_the_other(&world).await;
        at_once(&world).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_holders_of_one_token_only_the_first_to_claim_writes_to_mariadb() {
    only_the_first_to_claim_writes::<OnMariaDb>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_holders_of_one_token_only_the_first_to_claim_writes_to_mysql() {
    only_the_first_to_claim_writes::<OnMySql>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_holders_of_one_token_only_the_first_to_claim_writes_to_sqlite() {
    for journal in [SqliteJournalMode::Wal, SqliteJournalMode::Delete] {
        let world = OnSqlite::new(journal, Duration::from_secs(30)).await;
        one_after_the_other(&world).await;
        at_once(&world).await;
    }
}
