use redis::RedisResult;

use super::{Redis, Replicated, until};
/// The sentinels' name for the primary.
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

    /// Starts all six, with arguments for the primary and the replicas.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_with(arguments: &[&str]) -> Self {
        let arguments = [&["--repl-diskless-sync-delay", "0"], arguments].concat();
        let mut servers = Vec::new();
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            servers.push(Redis::start_with(&arguments).await);
            sentinels.push(Redis::start_sentinel(&[]).await);
        }
        let all = Self { servers, sentinels };
        let port = all.servers[0].port();
        for replica in &all.servers[1..] {
            let () = replica.command(&["REPLICAOF", "127.0.0.1", port]).await;
        }
        // A sentinel finds the replicas that its first look at the primary shows.
        let primary = &all.servers[0];
        until("the replicas are in step", || async {
            let info: String = primary.command(&["INFO", "replication"]).await;
            info.matches("state=online").count() == 2
        })
        .await;
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
    pub fn url(&self) -> String {
        let sentinels: Vec<_> = self.sentinels.iter().map(Redis::address).collect();
        format!("redis+sentinel://{}/{NAME}", sentinels.join(","))
    }

    /// The servers in their initial roles.
    pub fn servers(&self) -> Replicated<'_> {
        Replicated::new(&self.servers[0], &self.servers[1..])
    }

    /// The sentinels.
    pub fn sentinels(&self) -> &[Redis] {
        &self.sentinels
    }

    /// Fails over without losing anything, as an operator does before maintenance: writes wait
    /// until the replicas have received all of them and the sentinels have promoted one; then all
    /// clients are disconnected.
    ///
    /// # Panics
    /// If that takes longer than 60 s.
    pub async fn fail_over_as_planned(&self) {
        let primary = &self.servers[0];
        let () = primary
            .command(&["CLIENT", "PAUSE", "120000", "WRITE"])
            .await;
        self.servers().until_in_step().await;
        let () = self.sentinels[0]
            .command(&["SENTINEL", "FAILOVER", NAME])
            .await;
        self.until_known().await;
        let _gone: u32 = primary.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        let () = primary.command(&["CLIENT", "UNPAUSE"]).await;
    }

    /// The server that the first sentinel names.
    ///
    /// # Panics
    /// If it does not answer, or names an unknown server.
    pub async fn primary(&self) -> &Redis {
        let port = self.named_by(&self.sentinels[0]).await;
        let primary = self.servers.iter().find(|server| server.port() == port);
        primary.unwrap_or_else(|| panic!("no server listens at port {port}"))
    }

    /// Waits until most sentinels name a primary other than the initial one.
    ///
    /// # Panics
    /// If that takes longer than 60 s.
    pub async fn until_known(&self) {
        until("the sentinels name the new primary", || async {
            let mut name_it = 0;
            for sentinel in &self.sentinels {
                let port = self.named_by(sentinel).await;
                name_it += usize::from(port != self.servers[0].port());
            }
            name_it > self.sentinels.len() / 2
        })
        .await;
    }

    async fn named_by(&self, sentinel: &Redis) -> String {
        let (_, port): (String, String) = sentinel
            .command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])
            .await;
        port
    }
}
