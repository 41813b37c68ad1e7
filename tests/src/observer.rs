//! A direct look at the keys and channels of a Redis server.

use std::time::Duration;

use lock_core::backend::{Runtime, TokioRuntime};
use redis::{Client, Cmd, FromRedisValue, aio::MultiplexedConnection};

/// How long to wait for something that must happen. It takes far less time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two looks. It grows with the wait.
const LOOK_MIN: Duration = Duration::from_millis(5);
const LOOK_MAX: Duration = Duration::from_millis(50);

/// A separate client that looks at keys, channels and statistics.
#[derive(Clone, Debug)]
pub struct Observer {
    commands: MultiplexedConnection,
}

impl Observer {
    /// Connects.
    ///
    /// # Panics
    /// If no server answers there.
    pub async fn of(url: &str) -> Self {
        let client = Client::open(url).expect("a URL of Redis");
        let commands = client.get_multiplexed_async_connection().await;
        Self {
            commands: commands.expect("a server that answers"),
        }
    }

    /// The keys that match a pattern.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn keys(&self, pattern: &str) -> Vec<String> {
        self.ask(redis::cmd("KEYS").arg(pattern)).await
    }

    /// The keys of leases that match a pattern, without keys that say that there is no lease.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn leases(&self, pattern: &str) -> Vec<String> {
        let mut leases = Vec::new();
        for key in self.keys(pattern).await {
            let lease = self.text(&key).await;
            if lease.is_some_and(|lease| lease != "vacant") {
                leases.push(key);
            }
        }
        leases
    }

    /// All keys that have a time to live, with the time that each has left.
    ///
    /// # Panics
    /// If the server does not answer, or if a key without a time to live is neither a counter nor a
    /// configuration.
    pub async fn passing_keys(&self) -> Vec<(String, Duration)> {
        let mut passing = Vec::new();
        for key in self.keys("*").await {
            let left: i64 = self.ask(redis::cmd("PTTL").arg(&key)).await;
            let permanent = key.ends_with(":counter") || key.ends_with(":config");
            assert_eq!(permanent, left == -1, "{key} lives for {left} ms");
            // -2: the key has expired meanwhile.
            if let Ok(left) = u64::try_from(left) {
                passing.push((key, Duration::from_millis(left)));
            }
        }
        passing
    }

    /// The values of a hash.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn values(&self, key: &str) -> Vec<String> {
        self.ask(redis::cmd("HVALS").arg(key)).await
    }

    /// A string, if there is one.
    ///
    /// # Panics
    /// If the server does not answer, or the string is no text.
    pub async fn text(&self, key: &str) -> Option<String> {
        self.ask(redis::cmd("GET").arg(key)).await
    }

    /// The length of a string, in bytes; 0 if there is none.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn size(&self, key: &str) -> usize {
        self.ask(redis::cmd("STRLEN").arg(key)).await
    }

    /// The channels that have subscribers, including shard channels.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn channels(&self) -> Vec<String> {
        let mut channels = Vec::new();
        for kind in ["CHANNELS", "SHARDCHANNELS"] {
            let some: Vec<String> = self.ask(redis::cmd("PUBSUB").arg(kind)).await;
            channels.extend(some);
        }
        channels
    }

    /// How many clients are connected, including this one.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn clients(&self) -> usize {
        let list: String = self.ask(redis::cmd("CLIENT").arg("LIST")).await;
        list.lines().count()
    }

    /// How many scripts the server was asked to run since it started.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn scripts_called(&self) -> u64 {
        let info: String = self.ask(redis::cmd("INFO").arg("commandstats")).await;
        let calls = info
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let calls = calls.and_then(|calls| calls.split(',').next());
        calls.map_or(0, |calls| calls.parse().expect("a number"))
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        let answer = command.query_async(&mut self.commands.clone()).await;
        answer.unwrap_or_else(|error| panic!("the server does not answer: {error}"))
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// If it takes too long.
pub async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    until_within(PATIENCE, what, condition).await;
}

/// Waits until a condition holds that takes longer.
///
/// # Panics
/// If it takes longer than that.
pub async fn until_within(patience: Duration, what: &str, condition: impl AsyncFn() -> bool) {
    let begun = TokioRuntime.now();
    while !condition().await {
        let waited = TokioRuntime.now().since(begun);
        assert!(waited < patience, "never: {what}");
        // A look may ask a browser or start a process, and many tests look at the same time.
        tokio::time::sleep((waited / 8).clamp(LOOK_MIN, LOOK_MAX)).await;
    }
}
