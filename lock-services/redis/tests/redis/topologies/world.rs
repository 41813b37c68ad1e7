use std::time::Duration;

use e2e::servers::{Redis, RedisCluster, RedisWithSentinels, Replicated};
use lock_core::{FencingToken, InitialToken, LockManager};

/// The resource of all tests, whose shard is the same whatever the prefix.
pub(crate) const RESOURCE: &str = "account:1";

/// Servers of which one can take the place of another.
pub(crate) enum Servers {
    Sentinel(RedisWithSentinels),
    Cluster(RedisCluster),
}

/// Clients that share their keys.
pub(crate) struct Namespace {
    url: String,
    initial: InitialToken,
    patience: Duration,
    prefix: String,
}

impl Servers {
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sentinel(servers) => servers.url(),
            Self::Cluster(servers) => servers.url(),
        }
    }

    /// The server that has the shard of [`RESOURCE`], and its replicas.
    pub(crate) async fn of_resource(&self, namespace: &Namespace) -> Replicated<'_> {
        match self {
            Self::Sentinel(servers) => servers.servers(),
            Self::Cluster(servers) => {
                let counter = namespace.counter(servers.primaries()).await;
                servers.owner(&counter).await.1
            }
        }
    }

    /// Tokens that count from one, so that each lost grant can be seen.
    pub(crate) fn counting(&self) -> Namespace {
        self.namespace(InitialToken::At(FencingToken::MIN))
    }

    /// Tokens as they are by default.
    pub(crate) fn by_the_clock(&self) -> Namespace {
        self.namespace(InitialToken::Clock)
    }

    fn namespace(&self, initial: InitialToken) -> Namespace {
        Namespace {
            url: self.url(),
            initial,
            patience: Duration::from_secs(2),
            prefix: format!("t{:016x}", rand::random::<u64>()),
        }
    }
}

impl Namespace {
    /// A namespace whose clients wait this long for an answer, and for a slot that is being moved.
    pub(crate) fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The key of the only counter.
    pub(crate) async fn counter<'a>(
        &self,
        primaries: impl IntoIterator<Item = &'a Redis>,
    ) -> String {
        let pattern = format!("{}:*:counter", self.prefix);
        let mut counters = Vec::new();
        for node in primaries {
            let here: Vec<String> = node.command(&["KEYS", &pattern]).await;
            counters.extend(here);
        }
        assert_eq!(counters.len(), 1, "{counters:?}");
        counters.remove(0)
    }

    /// A client of its own, as another process would have.
    pub(crate) async fn connect(&self) -> LockManager {
        self.connect_to(&self.url).await
    }

    /// A client of its own, with another URL to the servers.
    pub(crate) async fn connect_to(&self, url: &str) -> LockManager {
        palisade::connect(url)
            .prefix(&self.prefix)
            .initial_token(self.initial)
            .response_timeout(self.patience)
            .await
            .unwrap()
    }
}

/// Acquires and releases [`RESOURCE`] once.
pub(crate) async fn turn(locks: &LockManager) -> FencingToken {
    let guard = locks.acquire(RESOURCE).await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    token
}
