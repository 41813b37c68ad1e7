//! The best possible result of the same client library.

use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use redis::{
    AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, PushInfo, PushKind,
    RedisResult, Script,
    aio::{MultiplexedConnection, SendError},
    io::tcp::TcpSettings,
};
use tokio::sync::Notify;

use crate::figure::BoxError;

/// Connects without any option that costs time.
pub(crate) async fn connect(url: &str) -> RedisResult<MultiplexedConnection> {
    connect_with(url, None::<fn(PushInfo) -> Result<(), SendError>>).await
}

/// Connects without Nagle's algorithm and without a timer per answer. If there is a receiver of
/// pushes, the connection uses RESP3.
async fn connect_with(
    url: &str,
    pushes: Option<impl Fn(PushInfo) -> Result<(), SendError> + Send + Sync + 'static>,
) -> RedisResult<MultiplexedConnection> {
    let tcp = TcpSettings::default().set_nodelay(true);
    let mut info = url.into_connection_info()?.set_tcp_settings(tcp);
    let mut config = AsyncConnectionConfig::new().set_response_timeout(None);
    if let Some(pushes) = pushes {
        let settings = info.redis_settings().clone();
        info = info.set_redis_settings(settings.set_protocol(ProtocolVersion::RESP3));
        config = config.set_push_sender(pushes);
    }
    Client::open(info)?
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

/// A script that does nothing. The client still has to send its name, one key and two arguments.
static NOTHING: LazyLock<Script> = LazyLock::new(|| Script::new("return 1"));

static PUBLISH: LazyLock<Script> =
    LazyLock::new(|| Script::new("return redis.call('PUBLISH', KEYS[1], ARGV[1])"));

/// The two round trips that an acquire and a release need.
pub(super) async fn two_round_trips(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    round_trip(connection).await?;
    round_trip(connection).await
}

/// One round trip that does nothing.
pub(crate) async fn round_trip(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let mut script = NOTHING.key("k");
    script.arg(1).arg(2);
    script.invoke_async::<i64>(connection).await.map(drop)
}

/// The bare minimum of a hand-off: a script publishes, and a push arrives.
pub(super) struct Hop {
    connection: MultiplexedConnection,
    arrived: Arc<Notify>,
}

const CHANNEL: &str = "hop";

impl Hop {
    pub(super) async fn connect(url: &str) -> Result<Self, BoxError> {
        let arrived = Arc::new(Notify::new());
        let arrives = Arc::clone(&arrived);
        let pushes = move |push: PushInfo| {
            if push.kind == PushKind::Message {
                arrives.notify_one();
            }
            Ok(())
        };
        let mut connection = connect_with(url, Some(pushes)).await?;
        connection.subscribe(CHANNEL).await?;
        Ok(Self {
            connection,
            arrived,
        })
    }

    /// Microseconds for one round trip on the same connection.
    pub(super) async fn time_of_an_answer(&mut self) -> Result<f64, BoxError> {
        let sent = Instant::now();
        round_trip(&mut self.connection).await?;
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
