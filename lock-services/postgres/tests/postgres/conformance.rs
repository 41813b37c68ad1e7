//! The contract of a lock service, directly and through PgBouncer.

use e2e::servers::{PgBouncer, PoolMode, PostgresDatabase};
use lock_core::{
    Extension,
    backend::{ConnectOptions, LockBackend as _},
};
use lock_testing::conformance::RealTime;
use tokio::sync::OnceCell;

use crate::world::{connect, database};

async fn shared() -> &'static PostgresDatabase {
    static SHARED: OnceCell<PostgresDatabase> = OnceCell::const_new();
    SHARED.get_or_init(database).await
}

async fn direct() -> RealTime {
    RealTime::new(connect(shared().await.url()).await)
}

/// A prefix of its own, because other cases have leases under the same names.
async fn with_prefix() -> RealTime {
    let prefix = format!("t{:016x}", rand::random::<u64>());
    let options = ConnectOptions::from(shared().await.url());
    RealTime::new(connect(options.prefix(prefix)).await)
}

/// The URL of a PgBouncer that gives connections to other clients after each transaction.
async fn pooled() -> String {
    static POOLER: OnceCell<PgBouncer> = OnceCell::const_new();
    let database = shared().await;
    let start = || PgBouncer::start(database, PoolMode::Transaction);
    POOLER.get_or_init(start).await.url(database)
}

/// A lock service behind a PgBouncer where each client has a connection of its own, on which
/// notices arrive.
async fn in_session_mode() -> RealTime {
    static POOLER: OnceCell<PgBouncer> = OnceCell::const_new();
    let database = shared().await;
    let enough = ["default_pool_size = 100"];
    let start = || PgBouncer::start_with(database, PoolMode::Session, &enough);
    let url = POOLER.get_or_init(start).await.url(database);
    let options = ConnectOptions::from(&url).parameter("listen", &url);
    RealTime::new(connect(options).await)
}

/// The waiters get no notices, so they look again and again.
async fn behind_pgbouncer() -> RealTime {
    RealTime::new(connect(&pooled().await).await)
}

/// Notices arrive on a connection to the database itself.
async fn listening_beside_pgbouncer() -> RealTime {
    let options = ConnectOptions::from(pooled().await);
    RealTime::new(connect(options.parameter("listen", shared().await.url())).await)
}

/// A case is left out if its extension is not claimed, so this test checks the claims.
#[tokio::test]
async fn postgres_claims_all_extensions() {
    let backend = connect(shared().await.url()).await;
    assert_eq!(backend.capabilities().extensions, Extension::ALL);
}

lock_testing::conformance_tests!(postgres_direct, direct().await);
lock_testing::conformance_tests!(postgres_with_prefix, with_prefix().await);
lock_testing::conformance_tests!(postgres_behind_pgbouncer, behind_pgbouncer().await);
// The cases that depend on notices, or on the state of a session.
lock_testing::conformance_tests!(
    postgres_listening_beside_pgbouncer, listening_beside_pgbouncer().await,
    only waits_until_release waits_until_expiry waits_by_the_present_lease wait_deadline
         a_lease_that_was_waited_for_is_not_short fairness_as_claimed cancel_leaves_nothing
         cancelled_at_every_await force_release_hands_on
);
lock_testing::conformance_tests!(
    postgres_behind_pgbouncer_sessions, in_session_mode().await,
    only waits_until_release fairness_as_claimed cancelled_at_every_await force_release_hands_on
);
