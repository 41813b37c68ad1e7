//! Servers that were started again: with all that they acknowledged, with less, or with nothing.

use std::sync::Arc;

use e2e::servers::{RedlockServers, until};
use lock_core::{
    Attempt, FencingToken, Holder, Issuer, Outcome, Released, ResourceName, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, Grant, LockBackend, LockBackendExt, RenewRequest, Renewed,
        TokioRuntime,
    },
};
use palisade_redlock::{NodeState, RedlockBackend};

use crate::world::{SHORT, connect, cycle, heal, in_service, provisioned, states};

const MARKER: &str = "palisade:redlock:node";
const LOGGED: [&str; 3] = ["--appendonly", "yes", "--appendfsync"];

/// Three nodes that write a log with this `appendfsync`, for leases of up to this length.
pub(crate) async fn logging(fsync: &str, longest: Ttl) -> RedlockServers {
    let arguments = [&LOGGED[..], &[fsync]].concat();
    in_service(RedlockServers::start_with(3, &arguments).await, longest).await
}

/// All servers are started again, one after the other or all at once, and no node is healed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_write_their_log_before_they_answer_serve_on_after_a_restart() {
    // Longer than three restarts.
    const TTL: Ttl = Ttl::secs(6);
    let servers = logging("always", TTL).await;
    let locks = connect(&servers).await;
    let mut last = cycle(&locks, "r").await;
    let held = locks.acquire("held").ttl(TTL).renew(false).await.unwrap();
    for node in servers.nodes() {
        node.restart().await;
    }
    let rival = connect(&servers).await;
    let told = rival.try_acquire("held").await.unwrap();
    assert!(matches!(told, Attempt::Held { .. }), "{told:?}");
    let next = rival.acquire("held").ttl(SHORT).await.unwrap();
    assert!(next.token() > held.token());
    for node in servers.nodes() {
        let token = cycle(&rival, "r").await;
        assert!(token > last);
        last = token;
        node.restart().await;
    }
    until("all of them serve", async || {
        let locks = palisade::connect(servers.url()).await;
        let Ok(locks) = locks else { return false };
        cycle(&locks, "r").await;
        states(&servers).await == vec![NodeState::Serving; 3]
    })
    .await;
    assert!(cycle(&connect(&servers).await, "r").await > last);
}

/// An operator heals a node before any client has asked the restarted nodes for a lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_nodes_that_write_their_log_before_they_answer_still_heal_another() {
    let servers = logging("always", SHORT).await;
    cycle(&connect(&servers).await, "r").await;
    for node in servers.nodes() {
        node.restart().await;
    }
    let lost = &servers.nodes()[0];
    drop::<String>(lost.command(&["FLUSHALL"]).await);
    assert!(heal(&servers, 0).await.unwrap());
    assert_eq!(states(&servers).await, vec![NodeState::Serving; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_write_their_log_later_have_to_be_healed_after_a_restart() {
    let servers = logging("everysec", SHORT).await;
    let token = cycle(&connect(&servers).await, "r").await;
    let node = &servers.nodes()[0];
    // A busy disk delays the writing.
    until("its log is written", async || {
        let log: String = node.command(&["INFO", "persistence"]).await;
        log.contains("aof_buffer_length:0\r")
    })
    .await;
    node.restart().await;
    let marker: Option<String> = node.command(&["GET", MARKER]).await;
    assert!(marker.is_some(), "it has come back with what it wrote");
    assert_eq!(states(&servers).await[0], NodeState::Restarted);
    // The other two nodes serve, and this node does not.
    let counter = "palisade:redlock:counter:r";
    let before: Option<String> = node.command(&["GET", counter]).await;
    assert!(cycle(&connect(&servers).await, "r").await > token);
    let after: Option<String> = node.command(&["GET", counter]).await;
    assert_eq!(before, after);

    assert!(heal(&servers, 0).await.unwrap());
    assert_eq!(states(&servers).await[0], NodeState::Serving);
}

async fn backend(servers: &RedlockServers) -> RedlockBackend {
    let backend = RedlockBackend::connect(servers.url(), Arc::new(TokioRuntime)).await;
    backend.unwrap()
}

/// A lease that one backend has acquired, for requests by another backend.
struct Held {
    attempt: AttemptRef,
    token: FencingToken,
}

impl Held {
    async fn by(backend: &RedlockBackend) -> Self {
        let resource = ResourceName::new("r").unwrap();
        let request = AcquireRequest::new(
            AttemptRef::new(&TokioRuntime, resource, Holder::random()),
            Ttl::secs(30),
        );
        let granted = LockBackendExt::acquire(backend, &request).await.unwrap();
        let Attempt::Granted(Grant { token, .. }) = granted else {
            panic!("it is free")
        };
        let attempt = request.attempt;
        Self { attempt, token }
    }

    fn sequencer(&self) -> Sequencer {
        let AttemptRef {
            resource, holder, ..
        } = self.attempt.clone();
        let issuer = Issuer::new("redlock").unwrap();
        Sequencer::new(issuer, resource, self.token, holder)
    }

    async fn renewed_by(&self, backend: &RedlockBackend) -> Result<Renewed, lock_core::Error> {
        let sequencer = self.sequencer();
        let ttl = Ttl::secs(30);
        let renewal = RenewRequest::new(sequencer, ttl);
        LockBackend::renew(backend, &[renewal]).await.remove(0)
    }
}

/// The state of a node that was started again is unknown, so none of its answers counts, not even
/// "not the holder".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_nodes_count_as_unknown_for_a_renewal_a_release_and_a_cancel() {
    let servers = provisioned(3).await;
    let held = Held::by(&backend(&servers).await).await;
    for node in &servers.nodes()[..2] {
        let marker: String = node.command(&["GET", MARKER]).await;
        let (incarnation, _) = marker.rsplit_once(':').unwrap();
        let of_another_run = format!("{incarnation}:0123456789");
        drop::<String>(node.command(&["SET", MARKER, &of_another_run]).await);
    }
    let other = backend(&servers).await;
    let renewed = held.renewed_by(&other).await;
    assert_eq!(renewed.unwrap_err().outcome(), Outcome::Unknown);
    let sequencer = held.sequencer();
    let released = LockBackend::release(&other, &sequencer, true).await;
    assert_eq!(released.unwrap_err().outcome(), Outcome::Unknown);
    let cancelled = LockBackend::cancel(&other, &held.attempt).await;
    assert_eq!(cancelled.unwrap_err().outcome(), Outcome::Unknown);
}

/// A node that is empty has no lease. If two nodes are empty, there is no lease any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_nodes_count_as_such_for_a_renewal_a_release_and_a_cancel() {
    let servers = provisioned(3).await;
    let backend = backend(&servers).await;
    let held = Held::by(&backend).await;
    for node in &servers.nodes()[..2] {
        drop::<String>(node.command(&["GETDEL", MARKER]).await);
    }
    let renewed = held.renewed_by(&backend).await.unwrap();
    assert_eq!(renewed, Renewed::NotHolder);
    LockBackend::cancel(&backend, &held.attempt).await.unwrap();
    let sequencer = held.sequencer();
    let released = LockBackend::release(&backend, &sequencer, true)
        .await
        .unwrap();
    assert_eq!(released, Released::NotHolder);
}
