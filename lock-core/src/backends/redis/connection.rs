use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use redis::{
    Client, IntoConnectionInfo, ProtocolVersion, PushKind, RedisResult, ScriptInvocation, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
    io::tcp::TcpSettings,
};
use url::Url;

use super::{RedisOptions, error::translate, wakeups::Wakeups};
use crate::{Error, Operation};

/// The one owner of the connection: commands go out and pushes come in on the same one.
///
/// The client library reconnects and subscribes again by itself, but never sends a command twice:
/// whether that is right is for the caller to know.
#[derive(Clone)]
pub(super) struct Connection {
    commands: ConnectionManager,
    wakeups: Wakeups,
    /// Counts connections: what one server promised means nothing on the next.
    generation: Arc<AtomicU64>,
}

impl Connection {
    pub(super) async fn open(url: &Url, options: &RedisOptions) -> Result<Self, Error> {
        Self::try_open(url, options)
            .await
            .map_err(|error| translate(error, Operation::Connect))
    }

    async fn try_open(url: &Url, options: &RedisOptions) -> RedisResult<Self> {
        let info = url.as_str().into_connection_info()?;
        let settings = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let info = info
            .set_redis_settings(settings)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let generation = Arc::new(AtomicU64::new(1));
        let (wakeups, subscriber) = Wakeups::new();
        let on_push = (wakeups.clone(), Arc::clone(&generation));
        let config = ConnectionManagerConfig::new()
            // Retries are ours: they know the deadline of the acquire that needs them.
            .set_number_of_retries(0)
            .set_connection_timeout(Some(options.response_timeout))
            .set_response_timeout(Some(options.response_timeout))
            .set_push_sender(move |push: redis::PushInfo| {
                let (wakeups, generation) = &on_push;
                match push.kind {
                    PushKind::Message => wakeups.message(push.data.first()),
                    PushKind::Disconnection => {
                        generation.fetch_add(1, Ordering::Relaxed);
                        wakeups.all();
                    }
                    _ => {}
                }
                Ok::<(), ()>(())
            })
            .set_automatic_resubscription();
        let commands = ConnectionManager::new_with_config(Client::open(info)?, config).await?;
        subscriber.start(commands.clone());
        Ok(Self {
            commands,
            wakeups,
            generation,
        })
    }

    /// Runs a script, loading it if the server does not know it.
    pub(super) async fn run(&self, script: &ScriptInvocation<'_>) -> RedisResult<Value> {
        script.invoke_async(&mut self.commands.clone()).await
    }

    /// Writes the configuration unless there is one, and returns the one that was there.
    pub(super) async fn set_config(&self, key: &str, config: &str) -> RedisResult<Option<String>> {
        let mut command = redis::cmd("SET");
        command.arg(key).arg(config).arg("NX").arg("GET");
        command.query_async(&mut self.commands.clone()).await
    }

    /// Changes with every connection.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    pub(super) const fn wakeups(&self) -> &Wakeups {
        &self.wakeups
    }
}
