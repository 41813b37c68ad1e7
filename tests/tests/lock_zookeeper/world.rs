use e2e::servers::ZooKeeper;
use lock_core::{LockManager, ResourceName};
use zookeeper_client::Client;

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

    /// The URL with a session of that length.
    pub(crate) fn url(&self, session_ms: u32) -> String {
        format!("{}?session_ms={session_ms}", self.server.url())
    }

    /// A client of its own, as another process would have.
    pub(crate) async fn connect(&self) -> LockManager {
        let builder = LockManager::builder().prefix(&self.prefix);
        builder.connect(&self.url(30_000)).await.unwrap()
    }

    /// The lock directory of a resource.
    pub(crate) fn directory(&self, resource: &str) -> String {
        format!("/{}/locks/{resource}", self.prefix)
    }

    /// A look past the locks.
    pub(crate) async fn observer(&self) -> Client {
        Client::connect(&self.server.servers()).await.unwrap()
    }
}

/// The names of the nodes in a line.
pub(crate) async fn nodes(observer: &Client, directory: &str) -> Vec<String> {
    // What others have written is seen from here on.
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
