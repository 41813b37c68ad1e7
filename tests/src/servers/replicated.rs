use redis::Value;

use super::{Redis, until};

/// A primary and its replicas, which Sentinel or Cluster fails over.
#[derive(Clone, Copy, Debug)]
pub struct Replicated<'a> {
    primary: &'a Redis,
    replicas: &'a [Redis],
}

impl<'a> Replicated<'a> {
    pub(super) const fn new(primary: &'a Redis, replicas: &'a [Redis]) -> Self {
        Self { primary, replicas }
    }

    /// The initial primary.
    pub const fn primary(&self) -> &'a Redis {
        self.primary
    }

    /// The initial replicas.
    pub const fn replicas(&self) -> &'a [Redis] {
        self.replicas
    }

    /// Waits until the replicas have all writes of the primary.
    ///
    /// # Panics
    /// If that takes longer than 60 s.
    pub async fn until_in_step(&self) {
        let written = offset(self.primary).await;
        until("the replicas have everything", || async {
            for replica in self.replicas {
                if offset(replica).await < written {
                    return false;
                }
            }
            true
        })
        .await;
    }

    /// Stops the replicas and cuts their links: writes of the primary from now on are lost when it
    /// dies.
    ///
    /// # Panics
    /// If a server does not answer.
    pub async fn cut_replicas_off(&self) {
        for replica in self.replicas {
            replica.pause().await;
        }
        // Otherwise the writes would wait in the sockets, and arrive later.
        let cut: usize = self
            .primary
            .command(&["CLIENT", "KILL", "TYPE", "replica"])
            .await;
        assert_eq!(cut, self.replicas.len(), "a replica had no link");
    }

    /// Kills the primary and lets the replicas go on; after some time one of them takes its place.
    ///
    /// # Panics
    /// If a server cannot be killed.
    pub async fn lose_primary(&self) {
        self.primary.kill().await;
        for replica in self.replicas {
            replica.resume().await;
        }
    }

    /// Waits until one of the replicas is a primary.
    ///
    /// # Panics
    /// If that takes longer than 60 s.
    pub async fn until_taken_over(&self) {
        until("a replica takes over", || async {
            for replica in self.replicas {
                if replica.is_primary().await {
                    return true;
                }
            }
            false
        })
        .await;
    }
}

/// How much a primary has written, or a replica has read.
async fn offset(server: &Redis) -> i64 {
    let role: Vec<Value> = server.command(&["ROLE"]).await;
    match &role[..] {
        [_, Value::Int(written), _] => *written,
        [.., Value::Int(read)] => *read,
        _ => panic!("not the role of a server: {role:?}"),
    }
}
