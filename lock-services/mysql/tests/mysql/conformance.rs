//! The contract of a lock service.

use e2e::servers::{MySqlDatabase, MySqlServer, OnMariaDb, OnMySql};
use lock_core::{
    Extension,
    backend::{ConnectOptions, LockBackend as _},
};
use lock_testing::conformance::RealTime;
use tokio::sync::OnceCell;

use crate::world::{connect, database, database_of};

/// A lock service for a case. All cases of one server share a database.
async fn on<S: MySqlServer>(shared: &OnceCell<MySqlDatabase>, prefix: Option<&str>) -> RealTime {
    let database = shared.get_or_init(database_of::<S>).await;
    let mut options = ConnectOptions::from(database.url());
    if let Some(prefix) = prefix {
        options = options.prefix(prefix);
    }
    RealTime::new(connect(options).await)
}

async fn mariadb(prefix: Option<&str>) -> RealTime {
    static SHARED: OnceCell<MySqlDatabase> = OnceCell::const_new();
    on::<OnMariaDb>(&SHARED, prefix).await
}

async fn mysql(prefix: Option<&str>) -> RealTime {
    static SHARED: OnceCell<MySqlDatabase> = OnceCell::const_new();
    on::<OnMySql>(&SHARED, prefix).await
}

/// A prefix of its own, because other cases have leases under the same names.
fn drawn() -> String {
    format!("t{:016x}", rand::random::<u64>())
}

/// A case is left out if its extension is not claimed, so this test checks the claims.
#[tokio::test]
async fn mysql_claims_all_extensions() {
    let backend = connect(database().await.url()).await;
    assert_eq!(backend.capabilities().extensions, Extension::ALL);
}

lock_testing::conformance_tests!(mariadb_direct, mariadb(None).await);
lock_testing::conformance_tests!(mariadb_with_prefix, mariadb(Some(&drawn())).await);
lock_testing::conformance_tests!(mysql_direct, mysql(None).await);
lock_testing::conformance_tests!(mysql_with_prefix, mysql(Some(&drawn())).await);
