//! The best that the same client library can do.

use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use redis::{PushInfo, PushKind, RedisResult, Script, aio::MultiplexedConnection};
use tokio::sync::Notify;

use super::server::{Server, connect};
use crate::figure::BoxError;

/// A script that does nothing. Its name, one key and two arguments have to be sent nevertheless.
static NOTHING: LazyLock<Script> = LazyLock::new(|| Script::new("return 1"));

static PUBLISH: LazyLock<Script> =
    LazyLock::new(|| Script::new("return redis.call('PUBLISH', KEYS[1], ARGV[1])"));

/// As many round trips as acquire and release need.
pub(super) async fn two_round_trips(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    for _ in 0..2 {
        let _: i64 = NOTHING
            .key("k")
            .arg(1)
            .arg(2)
            .invoke_async(connection)
            .await?;
    }
    Ok(())
}

/// The bare minimum of a hand-off: a script publishes, and a push arrives.
pub(super) struct Hop {
    connection: MultiplexedConnection,
    arrived: Arc<Notify>,
}

const CHANNEL: &str = "hop";

impl Hop {
    pub(super) async fn connect(server: &Server) -> Result<Self, BoxError> {
        let arrived = Arc::new(Notify::new());
        let arrives = Arc::clone(&arrived);
        let pushes = move |push: PushInfo| {
            if push.kind == PushKind::Message {
                arrives.notify_one();
            }
            Ok(())
        };
        let mut connection = connect(server.url(), Some(pushes)).await?;
        connection.subscribe(CHANNEL).await?;
        Ok(Self {
            connection,
            arrived,
        })
    }

    /// Microseconds for one round trip on the same connection.
    pub(super) async fn time_of_an_answer(&mut self) -> Result<f64, BoxError> {
        let sent = Instant::now();
        let _: i64 = NOTHING
            .key("k")
            .arg(1)
            .arg(2)
            .invoke_async(&mut self.connection)
            .await?;
        Ok(sent.elapsed().as_secs_f64() * 1e6)
    }

    /// One hop: microseconds from sending the script until its receiver gets the push.
    pub(super) async fn time(&mut self) -> Result<f64, BoxError> {
        let started = Instant::now();
        let arrived = async {
            self.arrived.notified().await;
            started.elapsed()
        };
        let mut script = PUBLISH.key(CHANNEL);
        script.arg("1234567890123456:0123456789abcdef");
        let (receivers, took): (RedisResult<i64>, _) =
            tokio::join!(script.invoke_async(&mut self.connection), arrived);
        match receivers? {
            1 => Ok(took.as_secs_f64() * 1e6),
            receivers => Err(format!("a push went to {receivers} receivers").into()),
        }
    }
}
