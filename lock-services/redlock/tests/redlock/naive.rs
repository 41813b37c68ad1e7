//! The control: Redlock as in other libraries, with the greatest of the nodes' counts as a token.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use e2e::history::{Event, History};
use futures_util::future::join_all;
use lock_core::{
    FencingToken, Holder, Issuer, ResourceName, Sequencer,
    backend::{Runtime, TokioRuntime},
};
use redis::{Client, RedisResult, Script, aio::MultiplexedConnection};

use crate::world::pause;

/// The key of the lock, on every node.
pub(crate) const LOCK: &str = "naive:lock";

const ACQUIRE: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', '2000') then
    return redis.call('INCR', KEYS[2]) end
    return 0";

const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1]) end
    return 0";

/// One client. It records its grants until the test is over.
pub(crate) async fn client(addresses: Vec<String>, history: Arc<History>, over: Arc<AtomicBool>) {
    let connections = join_all(addresses.iter().map(|address| async move {
        let client = Client::open(format!("redis://{address}")).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }));
    let connections: Vec<MultiplexedConnection> = connections.await;
    let (acquire, release) = (Script::new(ACQUIRE), Script::new(RELEASE));
    while !over.load(Ordering::Relaxed) {
        let (nonce, asked) = (Holder::random(), TokioRuntime.now());
        let counts = join_all(connections.iter().map(|connection| async {
            let mut script = acquire.prepare_invoke();
            script.key(LOCK).key("naive:counter").arg(nonce.expose());
            let count: RedisResult<u64> = script.invoke_async(&mut connection.clone()).await;
            count.ok().filter(|count| *count > 0)
        }));
        let counts: Vec<u64> = counts.await.into_iter().flatten().collect();
        if counts.len() > connections.len() / 2 {
            let token = FencingToken::new(*counts.iter().max().unwrap()).unwrap();
            let (issuer, resource) = (Issuer::new("naive"), ResourceName::new("naive"));
            let grant = Sequencer::new(issuer.unwrap(), resource.unwrap(), token, nonce);
            history.granted(Event::answered(&grant, asked));
            pause().await;
        }
        let ended = connections.iter().map(|connection| async {
            let mut script = release.prepare_invoke();
            script.key(LOCK).arg(nonce.expose());
            let ended: RedisResult<u64> = script.invoke_async(&mut connection.clone()).await;
            drop(ended);
        });
        join_all(ended).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        pause().await;
    }
}
