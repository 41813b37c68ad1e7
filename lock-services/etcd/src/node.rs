use std::{mem, sync::Mutex};

use tonic::transport::{Channel, Endpoint};
use tracing::debug;

use lock_core::backend::support::lock;

/// One node of a cluster, and the present connection to it.
pub(super) struct Node {
    endpoint: Endpoint,
    current: Mutex<Numbered>,
}

/// A connection, which is made when it is first used, and its number.
struct Numbered {
    number: u64,
    channel: Channel,
}

impl Node {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let channel = endpoint.connect_lazy();
        let current = Mutex::new(Numbered { number: 0, channel });
        Self { endpoint, current }
    }

    pub(super) fn channel(&self) -> Channel {
        lock(&self.current).channel.clone()
    }

    /// A number that distinguishes the connections to this node.
    pub(super) fn connection(&self) -> u64 {
        lock(&self.current).number
    }

    /// Makes a new connection for later requests, unless another request has done so. A connection
    /// on which no answer came in time may be one that a proxy has forgotten, and only a probe
    /// would notice that. Streams on the old connection go on if it lives.
    pub(super) fn give_up(&self, connection: u64) {
        let mut current = lock(&self.current);
        if current.number == connection {
            debug!("etcd: a connection without answers is replaced");
            current.number += 1;
            let old = mem::replace(&mut current.channel, self.endpoint.connect_lazy());
            drop(current);
            drop(old);
        }
    }
}
