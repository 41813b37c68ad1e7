//! The commands of operators while nodes are down, late, or lose their answers.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use e2e::{
    observer::{Observer, until},
    proxy::{Fault, Proxy},
    servers::RedlockServers,
};
use futures_util::future::join_all;
use lock_core::{
    Error, ErrorKind, FencingToken, ForceReleased, LeaseGuard, LockManager, Outcome, Ttl,
};
use tokio::time::timeout;

use crate::world::{PATIENCE, connect, cycle, provisioned};

const LONG: Ttl = Ttl::secs(60);

/// A text that is in every request of a release by force, and in no other request.
const FORCE: &str = "ended by force";

async fn listed(locks: &LockManager) -> Vec<String> {
    let listed = locks.list().await.unwrap().into_iter();
    listed.map(|one| one.resource.as_str().to_owned()).collect()
}

/// Ends the present lease by force. Returns the revocation token, which no holder gets.
async fn revocation(locks: &LockManager, resource: &str) -> FencingToken {
    match locks.force_release(resource).await.unwrap() {
        ForceReleased::Ended { revocation, .. } => revocation,
        ForceReleased::NotHeld => panic!("it was held"),
    }
}

fn assert_nothing_happened(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
}

async fn is_renewed(guard: &LeaseGuard) -> bool {
    match guard.renew(LONG).await {
        Err(error) if error.kind() == ErrorKind::Lost => false,
        renewed => renewed.is_ok(),
    }
}

/// Three nodes that know all scripts, each behind a proxy, and a client of the proxies.
async fn behind_proxies() -> (RedlockServers, Vec<Proxy>, LockManager) {
    let servers = provisioned(3).await;
    let proxies = servers.nodes().iter().map(|node| Proxy::start(node.url()));
    let proxies: Vec<Proxy> = join_all(proxies).await;
    let urls: Vec<_> = proxies.iter().map(|proxy| proxy.url("redis")).collect();
    let addresses: Vec<_> = urls
        .iter()
        .map(|url| url.trim_start_matches("redis://"))
        .collect();
    let url = format!("redlock+redis://{}", addresses.join(","));
    let locks = palisade::connect(&url).await.unwrap();
    // The first call sends a script's text to servers that do not know it.
    let _first = locks.acquire("first").ttl(LONG).await.unwrap().detach();
    revocation(&locks, "first").await;
    (servers, proxies, locks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_minority_down_what_is_held_is_listed_and_ended_by_force() {
    let servers = provisioned(5).await;
    let locks = connect(&servers).await;
    let held = locks.acquire("held").ttl(LONG).await.unwrap();
    let other = locks.acquire("other").ttl(LONG).await.unwrap();
    cycle(&locks, "released").await;
    servers.nodes()[0].kill().await;
    servers.nodes()[3].pause().await;
    assert_eq!(listed(&locks).await, ["held", "other"]);
    let revocation = revocation(&locks, "held").await;
    assert!(revocation > held.token());
    assert!(!is_renewed(&held).await);
    assert!(is_renewed(&other).await);
    assert_eq!(listed(&locks).await, ["other"]);
    assert!(cycle(&locks, "held").await > revocation);
    servers.nodes()[3].resume().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_has_all_pages_of_its_nodes() {
    const MANY: usize = 1200;
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    let mut held = Vec::new();
    for number in 0..MANY {
        let guard = locks.acquire(format!("r{number}")).ttl(LONG).await.unwrap();
        held.push(guard.detach());
    }
    servers.nodes()[1].kill().await;
    let all: BTreeSet<_> = (0..MANY).map(|number| format!("r{number}")).collect();
    let listed: BTreeSet<_> = listed(&locks).await.into_iter().collect();
    assert_eq!(listed.len(), held.len());
    assert_eq!(listed, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_listed_and_nothing_ended() {
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    let held = locks.acquire("r").ttl(LONG).await.unwrap();
    for node in &servers.nodes()[1..] {
        node.pause().await;
    }
    assert_nothing_happened(&timeout(PATIENCE, locks.list()).await.unwrap().unwrap_err());
    assert_nothing_happened(&locks.force_release("r").await.unwrap_err());
    for node in &servers.nodes()[1..] {
        node.resume().await;
    }
    assert!(is_renewed(&held).await);
    assert_eq!(listed(&locks).await, ["r"]);
}

/// The lease may have a majority together with the node that does not answer, so no other holder
/// gets the resource.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_is_uncertain_is_shown_and_not_ended() {
    let servers = provisioned(3).await;
    let [_, other, late] = servers.nodes() else {
        unreachable!("three were started")
    };
    late.pause().await;
    let locks = connect(&servers).await;
    let held = locks.acquire("r").ttl(LONG).await.unwrap();
    late.resume().await;
    other.pause().await;
    // Another client, which does not wait behind the requests of the first client.
    let operator = connect(&servers).await;
    let shown = operator.inspect("r").await.unwrap().holder.unwrap();
    assert_eq!(shown.token, held.token());
    assert_eq!(listed(&operator).await, ["r"]);
    assert_nothing_happened(&operator.force_release("r").await.unwrap_err());
    other.resume().await;
    assert!(is_renewed(&held).await, "it was left alone");
    late.pause().await;
    assert!(revocation(&operator, "r").await > held.token());
    assert!(!is_renewed(&held).await);
    late.resume().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_hears_of_a_release_by_force_late_ends_that_lease_and_keeps_nothing() {
    let (servers, proxies, locks) = behind_proxies().await;
    let held = locks.acquire("r").ttl(LONG).await.unwrap();
    let late = Observer::of(servers.nodes()[2].url()).await;
    until("a lease on the last node", async || {
        late.text("palisade:redlock:lease:r").await.is_some()
    })
    .await;
    let trap = proxies[2].at_request(FORCE, Fault::HoldRequests);
    let revocation = revocation(&locks, "r").await;
    assert!(trap.has_sprung() && revocation > held.token());
    assert!(late.text("palisade:redlock:lease:r").await.is_some());
    proxies[2].let_go();
    until("no lease on the last node", async || {
        late.keys("palisade:redlock:lease:*").await.is_empty()
    })
    .await;
    assert!(cycle(&locks, "r").await > revocation);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_to_a_release_by_force_are_unknown_and_then_it_is_not_held() {
    // If one node or none answers in time, the try is undone, and the lease has ended.
    for nodes in [1..3, 0..3] {
        with_lost_answers_of(nodes).await;
    }
}

async fn with_lost_answers_of(nodes: Range<usize>) {
    let (_servers, proxies, locks) = behind_proxies().await;
    let held = locks.acquire("r").ttl(LONG).await.unwrap();
    let reset = |node: usize| proxies[node].at_reply_to(FORCE, Fault::Reset);
    let traps: Vec<_> = nodes.map(reset).collect();
    let error = locks.force_release("r").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert!(traps.iter().all(e2e::proxy::Trap::has_sprung));
    assert!(!is_renewed(&held).await, "it was ended all the same");
    until("that it is not held", async || {
        matches!(locks.force_release("r").await, Ok(ForceReleased::NotHeld))
    })
    .await;
    assert!(cycle(&locks, "r").await > held.token());
}

/// Each release by force draws a further token that no holder gets. No grant lies between that
/// token and the token of the ended lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revocations_lie_between_the_tokens_that_are_granted_while_many_wait() {
    const ROUNDS: usize = 40;
    let servers = provisioned(3).await;
    let (over, operator) = (AtomicBool::new(false), connect(&servers).await);
    let client = async || {
        let locks = connect(&servers).await;
        let mut tokens = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let acquire = locks.acquire("r").ttl(LONG);
            if let Ok(guard) = acquire.wait(Duration::from_secs(1)).await {
                tokens.push(guard.token());
                if tokens.len() % 2 == 0 {
                    drop(guard.release().await);
                } else {
                    drop(guard.detach());
                }
            }
        }
        tokens
    };
    let ending = async {
        let mut ended = Vec::new();
        while ended.len() < ROUNDS {
            let forced = timeout(PATIENCE, operator.force_release("r")).await;
            if let Ok(ForceReleased::Ended { holder, revocation }) = forced.unwrap() {
                ended.push((holder.token, revocation));
            }
        }
        over.store(true, Ordering::Relaxed);
        ended
    };
    let (one, other, third, ended) = tokio::join!(client(), client(), client(), ending);
    let tokens: BTreeSet<_> = one.into_iter().chain(other).chain(third).collect();
    for (token, revocation) in ended {
        let between = tokens.range(token.next().unwrap()..=revocation);
        assert_eq!(between.count(), 0, "after {token}, up to {revocation}");
    }
}
