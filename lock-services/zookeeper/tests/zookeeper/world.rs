use std::sync::Arc;

use e2e::{proxy::Proxy, servers::ZooKeeper};
use lock_core::{
    Attempt, FencingToken, Holder, Issuer, LockManager, ResourceName, Sequencer, Ttl,
    backend::{AcquireRequest, AttemptRef, ConnectOptions, LockBackendExt, TokioRuntime, Wait},
};
use palisade_zookeeper::ZooKeeperBackend;
use zookeeper_client::Client;

/// A ttl that is far longer than a test. A lease that ends earlier was ended by a client.
const LONG: Ttl = Ttl::secs(300);

/// A directory of its own on a server.
pub(crate) struct Namespace<'a> {
    server: &'a ZooKeeper,
    pub(crate) prefix: String,
}

impl<'a> Namespace<'a> {
    pub(crate) fn fresh(server: &'a ZooKeeper) -> Self {
        Self {
            server,
            prefix: format!("t{:016x}", rand::random::<u64>()),
        }
    }

    /// The URL with a session of this length.
    pub(crate) fn url(&self, session_ms: u32) -> String {
        format!("{}?session_ms={session_ms}", self.server.url())
    }

    /// A client of its own, as another process would have.
    pub(crate) async fn connect(&self) -> LockManager {
        palisade::connect(self.url(30_000))
            .prefix(&self.prefix)
            .await
            .unwrap()
    }

    /// A lock service of its own. Its leases may be longer than any test.
    pub(crate) async fn backend(&self) -> ZooKeeperBackend {
        let options = ConnectOptions::from(self.url(1_000_000)).prefix(&self.prefix);
        let backend = ZooKeeperBackend::connect(options, Arc::new(TokioRuntime)).await;
        backend.unwrap()
    }

    /// The lock directory of a resource.
    pub(crate) fn directory(&self, resource: &str) -> String {
        format!("/{}/locks/{resource}", self.prefix)
    }

    /// Hosts and ports of the servers.
    pub(crate) fn servers(&self) -> String {
        self.server.servers()
    }

    /// A client that looks at the nodes without the lock service.
    pub(crate) async fn observer(&self) -> Client {
        Client::connect(&self.servers()).await.unwrap()
    }
}

/// A client whose connections go through a proxy.
pub(crate) async fn backend_at(proxy: &Proxy, prefix: &str) -> ZooKeeperBackend {
    let url = format!("{}?session_ms=1000000", proxy.url("zookeeper"));
    let options = ConnectOptions::from(url).prefix(prefix);
    let backend = ZooKeeperBackend::connect(options, Arc::new(TokioRuntime)).await;
    backend.unwrap()
}

/// The names of the nodes in a queue.
pub(crate) async fn nodes(observer: &Client, directory: &str) -> Vec<String> {
    // After this, changes by other clients are visible.
    observer.sync("/").await.unwrap();
    match observer.list_children(directory).await {
        Err(zookeeper_client::Error::NoNode) => Vec::new(),
        nodes => nodes.unwrap(),
    }
}

pub(crate) async fn until_waiting(locks: &LockManager, resource: &str, waiters: u64) {
    let resource = ResourceName::new(resource).unwrap();
    e2e::servers::until("they wait in line", || async {
        let seen = locks.inspect(&resource).await.unwrap();
        seen.waiters == Some(waiters)
    })
    .await;
}

/// A request of a holder of its own.
pub(crate) fn request(resource: &str, wait: Wait) -> AcquireRequest {
    let resource = ResourceName::new(resource).unwrap();
    let mut request = AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, resource, Holder::random()),
        LONG,
    );
    request.wait = wait;
    request
}

pub(crate) fn sequencer(request: &AcquireRequest, token: FencingToken) -> Sequencer {
    let issuer = Issuer::new("zookeeper").unwrap();
    let AttemptRef {
        resource, holder, ..
    } = &request.attempt;
    Sequencer::new(issuer, resource.clone(), token, *holder)
}

pub(crate) async fn granted(backend: &ZooKeeperBackend, request: &AcquireRequest) -> Sequencer {
    match backend.acquire(request).await {
        Ok(Attempt::Granted(grant)) => sequencer(request, grant.token),
        answer => panic!("it is free, and yet: {answer:?}"),
    }
}
