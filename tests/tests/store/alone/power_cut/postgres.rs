//! On Postgres.

use std::collections::BTreeSet;

use e2e::servers::DatabaseServer;
use fenced_store::FencedStore;
use sqlx::{
    Executor, PgPool, Postgres,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::clients::{Clients, Cut};

async fn clients(
    server: &DatabaseServer,
    synchronous_commit: &str,
    name: &'static str,
    insert: &'static str,
) -> Clients<Postgres> {
    let options: PgConnectOptions = server.url().parse().unwrap();
    let options = options.options([("synchronous_commit", synchronous_commit)]);
    let pool = PgPoolOptions::new().connect_with(options).await.unwrap();
    Clients::new(FencedStore::new(pool), name, insert)
}

async fn stored(pool: &PgPool, numbers: &'static str) -> BTreeSet<i64> {
    let numbers = sqlx::query_scalar(numbers).fetch_all(pool).await.unwrap();
    numbers.into_iter().collect()
}

/// The control has sessions that do not wait until a commit is on the disk. Their commits are lost,
/// and their marks are not: a claim waits for the disk whatever the setting of its session is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answered_commits_of_postgres_are_there_after_a_power_cut() {
    let server = DatabaseServer::postgres(&[]).await;
    let [careful, hasty] = [
        clients(&server, "on", "careful", "INSERT INTO careful VALUES ($1)").await,
        clients(&server, "off", "hasty", "INSERT INTO hasty VALUES ($1)").await,
    ];
    careful.store.migrate().await.unwrap();
    let tables = "CREATE TABLE careful (number bigint); CREATE TABLE hasty (number bigint)";
    careful.store.pool().execute(tables).await.unwrap();
    let mut lost_by_the_hasty = 0;
    for cut in [Cut::Kill, Cut::StopImmediately].repeat(2) {
        careful.until_cut(&server, cut).await;
        let pool = careful.store.pool();
        let found = stored(pool, "SELECT number FROM careful").await;
        assert_eq!(careful.accounts.lost(&found), 0, "{cut:?}");
        assert_eq!(careful.fallen_marks().await, 0, "{cut:?}");

        hasty.until_cut(&server, cut).await;
        let found = stored(hasty.store.pool(), "SELECT number FROM hasty").await;
        lost_by_the_hasty = hasty.accounts.lost(&found);
        assert_eq!(hasty.fallen_marks().await, 0, "{cut:?}");
    }
    assert!(lost_by_the_hasty > 0, "the control lost nothing");
    println!(
        "{} and {} commits, the hasty lost {lost_by_the_hasty}",
        careful.accounts.commits(),
        hasty.accounts.commits()
    );
}
