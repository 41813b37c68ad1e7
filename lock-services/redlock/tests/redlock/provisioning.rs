//! An operator brings all nodes into service, once.

use std::sync::Arc;

use e2e::servers::RedlockServers;
use lock_core::{
    ErrorKind, FencingToken, InitialToken, Ttl,
    backend::{ConnectOptions, Renewed, TokioRuntime},
};
use palisade_redlock::{NodeState, RedlockNodes};

use crate::world::{SHORT, connect, cycle, in_service, provisioned, states};

fn counting_from(servers: &RedlockServers, first: FencingToken) -> RedlockNodes {
    let options = ConnectOptions::from(servers.url()).initial_token(InitialToken::At(first));
    RedlockNodes::new(options, Arc::new(TokioRuntime)).unwrap()
}

async fn refused(url: &str) -> lock_core::Error {
    palisade::connect(url).await.unwrap_err()
}

#[tokio::test]
async fn nodes_that_were_never_provisioned_grant_nothing() {
    let servers = RedlockServers::start(3).await;
    let error = refused(&servers.url()).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("provision"), "{error}");
    assert_eq!(states(&servers).await, vec![NodeState::Uninitialised; 3]);
    let servers = in_service(servers, Ttl::secs(60)).await;
    assert_eq!(states(&servers).await, vec![NodeState::Serving; 3]);
    cycle(&connect(&servers).await, "r").await;
}

#[tokio::test]
async fn an_even_number_of_nodes_and_one_named_twice_are_refused() {
    let servers = provisioned(3).await;
    let addresses: Vec<_> = servers.nodes().iter().map(|node| node.address()).collect();
    let url = |addresses: &[&str]| format!("redlock+redis://{}", addresses.join(","));
    let other_name = addresses[0].replace("127.0.0.1", "localhost");
    for (wrong, says) in [
        (url(&addresses[..2]), "odd"),
        (url(&addresses[..1]), "3 to 15"),
        (
            url(&[addresses[0], addresses[1], addresses[0]]),
            "named twice",
        ),
        (
            url(&[addresses[0], addresses[1], &other_name]),
            "the same server as",
        ),
    ] {
        let error = refused(&wrong).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong}: {error}");
        assert!(error.to_string().contains(says), "{wrong}: {error}");
    }
}

#[tokio::test]
async fn provisioning_again_changes_nothing_and_stops_at_what_serves() {
    const MARKER: [&str; 2] = ["GET", "palisade:redlock:node"];
    let servers = provisioned(3).await;
    let nodes = servers.operated();
    let before: String = servers.nodes()[0].command(&MARKER).await;
    nodes.provision(Ttl::secs(60), None).await.unwrap();
    assert_eq!(servers.nodes()[0].command::<String>(&MARKER).await, before);

    servers.nodes()[2].restart_empty().await;
    let error = nodes.provision(SHORT, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let text = error.to_string();
    assert!(text.contains(servers.nodes()[0].address()), "{text}");
    assert!(text.contains("serving"), "{text}");
    assert!(
        !states(&servers).await[2].serves(),
        "it may have had part in a token"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_operators_that_provision_at_once_do_it_once() {
    let servers = RedlockServers::start(3).await;
    let longest = Ttl::secs(60);
    let all = (0..4).map(|_| servers.provision(longest));
    // An operator that comes when others have done a part stops.
    let done = futures_util::future::join_all(all).await;
    assert!(done.iter().any(Result::is_ok), "{done:?}");
    assert_eq!(states(&servers).await, vec![NodeState::Serving; 3]);
    cycle(&connect(&servers).await, "r").await;
}

/// The nodes already serve. An operator that asks for other settings gets an error that names
/// theirs.
#[tokio::test]
async fn nodes_that_serve_for_other_settings_are_an_error_that_says_what_they_are() {
    let servers = RedlockServers::start(3).await;
    let first = FencingToken::new(7).unwrap();
    let nodes = counting_from(&servers, first);
    let longest = Ttl::secs(60);
    let above = |number| FencingToken::new(number).ok();
    nodes.provision(longest, above(41)).await.unwrap();
    for (longest, above) in [(longest, None), (longest, above(40)), (longest, above(41))] {
        nodes.provision(longest, above).await.unwrap();
    }
    for (longest, above) in [
        (longest, above(42)),
        (Ttl::secs(61), None),
        (SHORT, above(1)),
    ] {
        let error = nodes.provision(longest, above).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let says = "for leases of at most 60000 ms and with tokens above 41";
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn tokens_begin_at_the_initial_token() {
    for (initial, above, first) in [(1, None, 1), (7, None, 7), (1, Some(41), 42)] {
        let servers = RedlockServers::start(3).await;
        let token = |number| FencingToken::new(number).unwrap();
        let nodes = counting_from(&servers, token(initial));
        nodes.provision(SHORT, above.map(token)).await.unwrap();
        let guard = connect(&servers)
            .await
            .acquire("r")
            .ttl(SHORT)
            .await
            .unwrap();
        assert_eq!(guard.token(), token(first));
    }
}

#[tokio::test]
async fn leases_that_are_longer_than_agreed_are_refused() {
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    let error = locks.acquire("r").ttl(Ttl::secs(61)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("60000 ms"), "{error}");

    let lease = locks.acquire("r").ttl(SHORT).await.unwrap().detach();
    let renewed = locks.renew(&lease.sequencer, Ttl::secs(61)).await;
    let error = renewed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let renewed = locks.renew(&lease.sequencer, Ttl::secs(60)).await.unwrap();
    assert!(matches!(renewed, Renewed::Renewed(_)), "{renewed:?}");
}

#[tokio::test]
async fn the_error_names_an_ability_that_redlock_lacks() {
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    let error = locks.acquire("r").max_waiters(3).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(locks.capabilities().fairness, lock_core::Fairness::None);
}
