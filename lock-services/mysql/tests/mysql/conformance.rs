//! The contract of a lock service.

use e2e::servers::MariaDbDatabase;
use lock_core::{
    Extension,
    backend::{ConnectOptions, LockBackend as _},
};
use lock_testing::conformance::RealTime;
use tokio::sync::OnceCell;

use crate::world::{connect, database};

async fn shared() -> &'static MariaDbDatabase {
    static SHARED: OnceCell<MariaDbDatabase> = OnceCell::const_new();
    SHARED.get_or_init(database).await
}

async fn direct() -> RealTime {
    RealTime::new(connect(shared().await.url()).await)
}

/// With leases of other clients under the same names.
async fn with_prefix() -> RealTime {
    let prefix = format!("t{:016x}", rand::random::<u64>());
    let options = ConnectOptions::from(shared().await.url());
    RealTime::new(connect(options.prefix(prefix)).await)
}

/// A case is left out where its extension is not claimed: this test pins the claims.
#[tokio::test]
async fn mysql_claims_all_extensions() {
    let backend = connect(shared().await.url()).await;
    assert_eq!(backend.capabilities().extensions, Extension::ALL);
}

lock_testing::conformance_tests!(mariadb_direct, direct().await);
lock_testing::conformance_tests!(mariadb_with_prefix, with_prefix().await);
