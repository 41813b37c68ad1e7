//! On MariaDB and MySQL.

use std::collections::BTreeSet;

use e2e::servers::{MySqlServer, OnMariaDb, OnMySql};
use fenced_store::FencedStore;
use sqlx::{Executor, MySqlPool};

use super::clients::{Clients, Cut};

async fn stored(pool: &MySqlPool) -> BTreeSet<i64> {
    let numbers = sqlx::query_scalar("SELECT number FROM journal");
    numbers.fetch_all(pool).await.unwrap().into_iter().collect()
}

/// The hasty server writes its log once a second, which may be just before the cut.
const HASTY_CUTS: usize = 10;

/// The control is the same server with the setting not to write its log at each commit. Then marks
/// are lost together with commits. docs/operations/failover.md names the setting that is needed.
async fn answered_commits_are_there_after_a_power_cut<S: MySqlServer>() {
    let server = S::start().await;
    let pool = MySqlPool::connect(server.url()).await.unwrap();
    pool.execute("CREATE TABLE journal (number BIGINT)")
        .await
        .unwrap();
    let insert = "INSERT INTO journal VALUES (?)";
    let clients = Clients::new(FencedStore::new(pool), "journal", insert);
    clients.store.migrate().await.unwrap();
    for _ in 0..2 {
        clients.until_cut(&server, Cut::Kill).await;
        let found = stored(clients.store.pool()).await;
        assert_eq!(clients.accounts.lost(&found), 0);
        assert_eq!(clients.fallen_marks().await, 0);
    }

    let pool = clients.store.pool();
    let hasty = "SET GLOBAL innodb_flush_log_at_trx_commit = 0";
    pool.execute(hasty).await.unwrap();
    let mut lost = 0;
    for _ in 0..HASTY_CUTS {
        clients.until_cut(&server, Cut::Kill).await;
        lost += clients.accounts.lost(&stored(pool).await);
        if lost > 0 {
            break;
        }
    }
    assert!(lost > 0, "the control lost nothing");
    println!(
        "{} commits, the hasty lost {lost}",
        clients.accounts.commits()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answered_commits_of_mariadb_are_there_after_a_power_cut() {
    answered_commits_are_there_after_a_power_cut::<OnMariaDb>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answered_commits_of_mysql_are_there_after_a_power_cut() {
    answered_commits_are_there_after_a_power_cut::<OnMySql>().await;
}
