//! A connection for outgoing commands and incoming wake-ups.

use std::sync::Arc;

use redis::{PushInfo, PushKind, RedisResult, Script, Value, aio::MultiplexedConnection};
use tokio::sync::Notify;

use crate::redis::server::connect;

/// One connection, and for each waiter one place at which it is woken.
///
/// It uses the same transport as ours, so that only the protocols are compared.
pub(super) struct Wire {
    connection: MultiplexedConnection,
    places: Arc<[Notify]>,
}

impl Wire {
    /// Subscribes to a channel whose messages are numbers of places.
    pub(super) async fn connect(url: &str, channel: &str, places: u32) -> RedisResult<Self> {
        let places: Arc<[Notify]> = (0..places).map(|_| Notify::new()).collect();
        let wakes = Arc::clone(&places);
        let pushes = move |push: PushInfo| {
            if push.kind == PushKind::Message
                && let Some(place) = push.data.get(1).and_then(place_in)
                && let Some(place) = wakes.get(place)
            {
                place.notify_one();
            }
            Ok(())
        };
        let mut connection = connect(url, Some(pushes)).await?;
        connection.subscribe(channel).await?;
        Ok(Self { connection, places })
    }

    /// Runs a script whose answer is a number.
    pub(super) async fn run(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: &[&str],
    ) -> RedisResult<i64> {
        let mut invocation = script.prepare_invoke();
        for key in keys {
            invocation.key(key);
        }
        for argument in arguments {
            invocation.arg(argument);
        }
        invocation.invoke_async(&mut self.connection.clone()).await
    }

    /// Completes when this place is woken, or has been woken before.
    pub(super) async fn woken(&self, place: usize) {
        self.places[place].notified().await;
    }
}

fn place_in(payload: &Value) -> Option<usize> {
    match payload {
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
