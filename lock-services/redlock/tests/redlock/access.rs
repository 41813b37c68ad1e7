//! TLS, by URL.

use std::sync::Arc;

use e2e::servers::{Certificates, Redis};
use futures_util::future::join_all;
use lock_core::{ErrorKind, Ttl, backend::TokioRuntime};
use palisade_redlock::{NodeState, RedlockNodes};

use crate::world::cycle;

#[tokio::test]
async fn nodes_behind_tls_are_provisioned_and_grant() {
    let certificates = Certificates::create().await;
    let nodes = (0..3).map(|_| Redis::start_with_tls(&certificates, &[]));
    let nodes: Vec<Redis> = join_all(nodes).await;
    let addresses: Vec<_> = nodes.iter().map(Redis::address).collect();
    let bare = format!("redlock+rediss://{}", addresses.join(","));
    let url = format!(
        "{bare}?tls_ca={}&tls_cert={}&tls_key={}",
        certificates.ca(),
        certificates.client(),
        certificates.client_key(),
    );
    let operated = RedlockNodes::new(&url, Arc::new(TokioRuntime)).unwrap();
    operated.provision(Ttl::secs(60), None).await.unwrap();
    let locks = palisade::connect(&url).await.unwrap();
    assert!(cycle(&locks, "r").await < cycle(&locks, "r").await);

    let error = palisade::connect(&bare).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("tls_ca"), "{error}");
    let plain = bare.replace("rediss", "redis");
    let plain = RedlockNodes::new(&plain, Arc::new(TokioRuntime));
    for node in plain.unwrap().status().await {
        assert!(matches!(node.state, NodeState::Unusable(_)), "{node:?}");
    }
}
