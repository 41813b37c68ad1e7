use std::sync::Arc;

use futures_util::future::join_all;
use lock_core::{Error, Ttl, backend::TokioRuntime};
use palisade::redlock::RedlockNodes;

use super::Redis;

/// Independent Redis servers, as Redlock uses them.
#[derive(Debug)]
pub struct RedlockServers {
    nodes: Vec<Redis>,
}

impl RedlockServers {
    /// Starts this many servers, all of them empty.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start(count: usize) -> Self {
        Self {
            nodes: join_all((0..count).map(|_| Redis::start())).await,
        }
    }

    /// Starts this many servers, with more arguments on the command line of each.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_with(count: usize, arguments: &[&str]) -> Self {
        Self {
            nodes: join_all((0..count).map(|_| Redis::start_with(arguments))).await,
        }
    }

    /// Starts this many servers, each with a wall clock of its own.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_with_own_clocks(count: usize) -> Self {
        Self {
            nodes: join_all((0..count).map(|_| Redis::start_with_own_clock())).await,
        }
    }

    /// The URL of all servers.
    pub fn url(&self) -> String {
        url_of(&self.nodes)
    }

    /// The servers, in the order of the URL.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Brings all of them into service, for leases of at most this length.
    ///
    /// # Errors
    /// If one of them is not new.
    pub async fn provision(&self, longest: Ttl) -> Result<(), Error> {
        self.operated().provision(longest, None).await
    }

    /// The nodes as an operator sees them.
    ///
    /// # Panics
    /// Never: the URL is right.
    pub fn operated(&self) -> RedlockNodes {
        let nodes = RedlockNodes::new(self.url(), Arc::new(TokioRuntime));
        nodes.expect("a URL of Redlock")
    }
}

/// The URL of some servers.
fn url_of(nodes: &[Redis]) -> String {
    let addresses: Vec<_> = nodes.iter().map(Redis::address).collect();
    format!("redlock+redis://{}", addresses.join(","))
}
