use redis::{RedisResult, Value};

use super::{Redis, until};
use crate::warden::ServerKind;

/// What the sentinels call the primary.
const NAME: &str = "locks";

/// A primary, two replicas of it, and three sentinels that agree on a failover by two votes.
#[derive(Debug)]
pub struct RedisWithSentinels {
    servers: Vec<Redis>,
    sentinels: Vec<Redis>,
}

impl RedisWithSentinels {
    /// Starts all six. The sentinels know each other, and the replicas, when this returns.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same, with arguments for the primary and the replicas.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_with(arguments: &[&str]) -> Self {
        let arguments = [&["--repl-diskless-sync-delay", "0"], arguments].concat();
        let mut servers = Vec::new();
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            servers.push(Redis::start_with(&arguments).await);
            sentinels.push(Redis::start_as(ServerKind::RedisSentinel, &[]).await);
        }
        let all = Self { servers, sentinels };
        let port = all.servers[0].port();
        for replica in &all.servers[1..] {
            let () = replica.command(&["REPLICAOF", "127.0.0.1", port]).await;
        }
        // A sentinel finds the replicas that its first look at the primary shows.
        all.until_replicated(&all.servers[0]).await;
        for sentinel in &all.sentinels {
            let () = sentinel
                .command(&["SENTINEL", "MONITOR", NAME, "127.0.0.1", port, "2"])
                .await;
            for (setting, millis) in [
                ("down-after-milliseconds", "500"),
                ("failover-timeout", "3000"),
            ] {
                let () = sentinel
                    .command(&["SENTINEL", "SET", NAME, setting, millis])
                    .await;
            }
        }
        for sentinel in &all.sentinels {
            until("the sentinels know each other", || async {
                let usable: RedisResult<String> =
                    sentinel.try_command(&["SENTINEL", "CKQUORUM", NAME]).await;
                usable.is_ok_and(|says| says.contains("3 usable"))
            })
            .await;
        }
        all
    }

    /// `redis+sentinel://..`, with all sentinels.
    #[must_use]
    pub fn url(&self) -> String {
        let sentinels: Vec<_> = self.sentinels.iter().map(Redis::address).collect();
        format!("redis+sentinel://{}/{NAME}", sentinels.join(","))
    }

    /// The server that was the primary at the start.
    #[must_use]
    pub fn first_primary(&self) -> &Redis {
        &self.servers[0]
    }

    /// The servers that were replicas at the start.
    #[must_use]
    pub fn first_replicas(&self) -> &[Redis] {
        &self.servers[1..]
    }

    /// The sentinels.
    #[must_use]
    pub fn sentinels(&self) -> &[Redis] {
        &self.sentinels
    }

    /// The server that the first sentinel takes for the primary now.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn primary(&self) -> &Redis {
        let (_, port): (String, String) = self.sentinels[0]
            .command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])
            .await;
        let primary = self.servers.iter().find(|server| server.port() == port);
        primary.unwrap_or_else(|| panic!("the sentinels name a stranger at port {port}"))
    }

    /// Waits until the sentinels have made another server the primary.
    ///
    /// # Panics
    /// If that takes longer than 20 s.
    pub async fn until_failed_over(&self) {
        until("failed over", || async {
            self.primary().await.port() != self.servers[0].port()
        })
        .await;
    }

    /// Fails over without losing anything, as an operator does before maintenance: writes wait
    /// until the replicas have got all of them.
    ///
    /// # Panics
    /// If that takes longer than 20 s.
    pub async fn fail_over_as_planned(&self) {
        let primary = &self.servers[0];
        let () = primary
            .command(&["CLIENT", "PAUSE", "20000", "WRITE"])
            .await;
        let written = offset(primary).await;
        until("the replicas have everything", || async {
            let mut behind = false;
            for replica in &self.servers[1..] {
                behind |= offset(replica).await < written;
            }
            !behind
        })
        .await;
        let () = self.sentinels[0]
            .command(&["SENTINEL", "FAILOVER", NAME])
            .await;
        self.until_failed_over().await;
        let () = primary.command(&["CLIENT", "UNPAUSE"]).await;
    }

    /// Stops the replicas in mid-air and cuts their links: what the primary writes from here on is
    /// lost when it dies.
    ///
    /// # Panics
    /// If a server does not answer.
    pub async fn cut_replicas_off(&self) {
        for replica in &self.servers[1..] {
            replica.pause().await;
        }
        // Without this the writes would wait in the sockets, and arrive after all.
        let _cut: u32 = self.servers[0]
            .command(&["CLIENT", "KILL", "TYPE", "replica"])
            .await;
    }

    /// Kills the primary and lets the replicas go on, one of which the sentinels promote.
    ///
    /// # Panics
    /// If a server cannot be killed.
    pub async fn lose_primary(&self) {
        self.servers[0].kill().await;
        for replica in &self.servers[1..] {
            replica.resume().await;
        }
        self.until_failed_over().await;
    }

    /// Waits until all replicas are in step with a primary.
    async fn until_replicated(&self, primary: &Redis) {
        until("the replicas are in step", || async {
            let info: String = primary.command(&["INFO", "replication"]).await;
            info.matches("state=online").count() == self.servers.len() - 1
        })
        .await;
    }
}

/// How far a primary has written, or a replica has read.
async fn offset(server: &Redis) -> i64 {
    let role: Vec<Value> = server.command(&["ROLE"]).await;
    match &role[..] {
        [_, Value::Int(written), _] => *written,
        [.., Value::Int(read)] => *read,
        _ => panic!("not the role of a server: {role:?}"),
    }
}
