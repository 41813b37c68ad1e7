//! The meaning of an error of a commit. A backup keeps all commits of a MariaDB from happening. A
//! backup of MySQL also keeps the statements before the commit from happening.

use e2e::servers::{DatabaseServer, until};
use fenced_store::{FenceError, FencedStore, MySqlFencedStore};
use lock_core::Sequencer;
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, MySqlPool};

use crate::rule::{assert_kind, grant};

struct World {
    server: DatabaseServer,
    store: MySqlFencedStore,
    grant: Sequencer,
}

impl World {
    /// A store with a grant that has been claimed.
    async fn new() -> Self {
        let server = DatabaseServer::mariadb().await;
        let pool = MySqlPool::connect(server.url()).await.unwrap();
        pool.execute("CREATE DATABASE bank").await.unwrap();
        let url = server.url().replace("/mysql", "/bank");
        let store = FencedStore::new(MySqlPool::connect(&url).await.unwrap());
        let table = "CREATE TABLE journal (number INT)";
        store.pool().execute(table).await.unwrap();
        store.migrate().await.unwrap();
        let grant = grant("account:42", 33);
        store.claim(&grant).await.unwrap();
        Self {
            server,
            store,
            grant,
        }
    }

    /// The error of a commit that the backup holds up, in a session with this setting. `meanwhile`
    /// is executed while the commit waits.
    async fn held_up(&self, setting: &'static str, meanwhile: &str) -> FenceError {
        let mut tx = self.store.begin(&self.grant).await.unwrap();
        tx.execute(setting).await.unwrap();
        tx.execute("INSERT INTO journal VALUES (1)").await.unwrap();
        let session: u64 = sqlx::query_scalar("SELECT CONNECTION_ID()")
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        let mut backup = MySqlConnection::connect(self.server.url()).await.unwrap();
        backup.execute("BACKUP STAGE START").await.unwrap();
        backup.execute("BACKUP STAGE BLOCK_COMMIT").await.unwrap();
        let strike = async {
            until("the commit waits", async || {
                let waits = "SELECT COUNT(*) FROM information_schema.processlist
                             WHERE id = ? AND state = 'Waiting for backup lock'";
                let waits = sqlx::query_scalar::<_, i64>(waits).bind(session);
                waits.fetch_one(self.store.pool()).await.unwrap() == 1
            })
            .await;
            let meanwhile = AssertSqlSafe(meanwhile.replace("$session", &session.to_string()));
            self.store.pool().execute(meanwhile).await.unwrap();
        };
        let (committed, ()) = tokio::join!(tx.commit(), strike);
        backup.execute("BACKUP STAGE END").await.unwrap();
        committed.unwrap_err()
    }

    async fn written(&self) -> i64 {
        let rows = sqlx::query_scalar("SELECT COUNT(*) FROM journal");
        rows.fetch_one(self.store.pool()).await.unwrap()
    }
}

/// An interrupt may come before the commit or after it, with the same error. In this test it came
/// before.
#[tokio::test]
async fn a_commit_that_was_interrupted_is_unknown() {
    let world = World::new().await;
    let error = world.held_up("DO 0", "KILL QUERY $session").await;
    assert_kind!(error, CommitUnknown);
    assert!(!error.is_retryable());
    world.store.settle(&world.grant).await.unwrap();
    assert_eq!(world.written().await, 0);
}

/// A timeout that comes before the commit shows that the commit did not happen.
#[tokio::test]
async fn a_commit_that_waited_too_long_for_a_lock_did_not_happen() {
    let world = World::new().await;
    let error = world
        .held_up("SET SESSION lock_wait_timeout = 1", "DO 0")
        .await;
    assert_kind!(error, Busy);
    world.store.settle(&world.grant).await.unwrap();
    assert_eq!(world.written().await, 0);
}
