//! The contract of a lock service.

use std::sync::LazyLock;

use lock_core::{
    Extension,
    backend::{ConnectOptions, LockBackend as _},
};
use lock_testing::conformance::RealTime;

use crate::world::{Folder, connect};

/// A file that all cases write, so that each is disturbed by the others.
static SHARED: LazyLock<Folder> = LazyLock::new(Folder::new);

async fn in_one_file() -> RealTime {
    RealTime::new(connect(SHARED.url()).await)
}

/// A prefix of its own, because other cases have leases under the same names.
async fn with_prefix() -> RealTime {
    let prefix = format!("t{:016x}", rand::random::<u64>());
    RealTime::new(connect(ConnectOptions::from(SHARED.url()).prefix(prefix)).await)
}

/// A case is left out if its extension is not claimed, so this test checks the claims.
#[tokio::test]
async fn sqlite_claims_all_extensions() {
    let backend = connect(SHARED.url()).await;
    assert_eq!(backend.capabilities().extensions, Extension::ALL);
}

lock_testing::conformance_tests!(sqlite_in_one_file, in_one_file().await);
lock_testing::conformance_tests!(sqlite_with_prefix, with_prefix().await);
