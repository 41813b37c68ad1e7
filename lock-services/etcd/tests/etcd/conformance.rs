//! The contract of a lock service, on one node and on three.

use std::{sync::Arc, time::Duration};

use e2e::servers::{Etcd, etcd};
use lock_core::{
    Extension, FencingToken, InitialToken, Ttl,
    backend::{ConnectOptions, LockService, TokioRuntime},
};
use lock_testing::conformance::RealTime;
use palisade_etcd::EtcdBackend;
use tokio::sync::OnceCell;

use crate::world::prefix;

async fn connect(url: &str, initial: InitialToken) -> LockService {
    let options = ConnectOptions::from(url)
        .prefix(prefix())
        .initial_token(initial);
    let backend = EtcdBackend::connect(options, Arc::new(TokioRuntime)).await;
    backend.unwrap().into()
}

/// etcd counts whole seconds, and looks twice a second which leases have ended. Its leases are a
/// second longer than their holders count.
async fn node(initial: InitialToken) -> RealTime {
    seconds(connect(&etcd().await.url(), initial).await, 1)
}

async fn cluster() -> RealTime {
    static SHARED: OnceCell<Etcd> = OnceCell::const_new();
    let servers = SHARED.get_or_init(Etcd::start_cluster).await;
    seconds(connect(&servers.url(), InitialToken::Clock).await, 2)
}

fn seconds(backend: LockService, short: u32) -> RealTime {
    RealTime::new(backend).short(Ttl::secs(short), Duration::from_millis(2500))
}

/// A case is left out if its extension is not claimed, so this test checks the claims.
#[tokio::test]
async fn etcd_claims_the_extensions_that_its_cases_check() {
    let backend = connect(&etcd().await.url(), InitialToken::Clock).await;
    assert_eq!(
        backend.capabilities().extensions,
        [
            Extension::Metadata,
            Extension::QueueLimit,
            Extension::Holds,
            Extension::ForceRelease,
            Extension::List,
        ]
    );
}

lock_testing::conformance_tests!(etcd_one_node, node(InitialToken::Clock).await);
lock_testing::conformance_tests!(
    etcd_counting_from_one,
    node(InitialToken::At(FencingToken::MIN)).await,
    only order floor implausible_floor replay ended_acquisition_stays_ended force_release_revokes
    list_shows_what_is_held
);
lock_testing::conformance_tests!(etcd_three_nodes, cluster().await);
