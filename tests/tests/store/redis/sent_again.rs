//! A connection that sends a request again by itself when it has not been answered, or in some ways
//! refused, as one to a cluster does.

use std::sync::Arc;

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Redis, RedisCluster, until},
};
use fenced_store::{FenceError, FencedRedis};
use redis::{
    Cmd, Pipeline, RedisFuture, RetryMethod, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use tokio::sync::Notify;

use super::{connection, grant};

/// Sends through the proxy, and the second time past it, when it is told to.
#[derive(Clone)]
struct SentAgain {
    first: MultiplexedConnection,
    again: MultiplexedConnection,
    go_on: Arc<Notify>,
}

impl ConnectionLike for SentAgain {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            match self.first.req_packed_command(command).await {
                Err(error) if !matches!(error.retry_method(), RetryMethod::NoRetry) => {
                    self.go_on.notified().await;
                    self.again.req_packed_command(command).await
                }
                answer => answer,
            }
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.first.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.first.get_db()
    }
}

async fn through(proxy: &Proxy, server: &Redis) -> SentAgain {
    SentAgain {
        first: connection(&proxy.url("redis")).await,
        again: connection(server.url()).await,
        go_on: Arc::default(),
    }
}

/// The first time it is written and not answered; the second time the node refuses to serve,
/// because the rest of the cluster is gone.
#[tokio::test]
async fn a_write_to_redis_that_is_sent_again_is_unknown_whatever_the_last_answer() {
    let cluster = RedisCluster::start().await;
    let (owner, _) = cluster.owner("{account:42}").await;
    let node = &cluster.primaries()[owner];
    let () = node
        .command(&["CONFIG", "SET", "cluster-allow-reads-when-down", "yes"])
        .await;
    let proxy = Proxy::start(node.url()).await;
    let sent_again = through(&proxy, node).await;
    let store = FencedRedis::new(sent_again.clone());
    let ours = grant(33);
    store.claim(&ours).await.unwrap();
    store.set(&ours, "1", None).await.unwrap();

    let lost = proxy.at_reply_to("EVALSHA", Fault::Cut);
    let the_cluster_fails = async {
        until("its answer is lost", async || lost.has_sprung()).await;
        for (number, other) in cluster.primaries().iter().enumerate() {
            if number != owner {
                other.kill().await;
            }
        }
        until("the node serves no more", async || {
            let info: String = node.command(&["CLUSTER", "INFO"]).await;
            info.contains("cluster_state:fail")
        })
        .await;
        sent_again.go_on.notify_one();
    };
    let (written, ()) = tokio::join!(store.set(&ours, "2", None), the_cluster_fails);
    let error = written.unwrap_err();
    assert!(
        matches!(error, FenceError::CommitUnknown { .. }),
        "{error:?}"
    );
    assert!(format!("{error:?}").contains("ClusterDown"), "{error:?}");
    let key = store.value_key("account:42").unwrap();
    let value: String = node.command(&["GET", &key]).await;
    assert_eq!(value, "2", "it was written");
}

/// Between the two times a newer holder has claimed, and has read what the first time wrote.
#[tokio::test]
async fn a_refusal_of_what_was_sent_again_does_not_tell_of_the_first_time() {
    let server = Redis::start().await;
    let proxy = Proxy::start(server.url()).await;
    let sent_again = through(&proxy, &server).await;
    let store = FencedRedis::new(sent_again.clone());
    let newer_holder = FencedRedis::new(connection(server.url()).await);
    let (old, new) = (grant(33), grant(34));
    store.claim(&old).await.unwrap();
    store.set(&old, "1", None).await.unwrap();

    let lost = proxy.at_reply_to("EVALSHA", Fault::Cut);
    let a_newer_claim = async {
        until("its answer is lost", async || lost.has_sprung()).await;
        newer_holder.claim(&new).await.unwrap();
        let read = newer_holder.get(&new).await.unwrap();
        sent_again.go_on.notify_one();
        read.unwrap()
    };
    let (written, read) = tokio::join!(store.set(&old, "2", None), a_newer_claim);
    let error = written.unwrap_err();
    assert!(matches!(error, FenceError::Stale { .. }), "{error:?}");
    assert_eq!(read, b"2");
    assert_eq!(newer_holder.get(&new).await.unwrap().unwrap(), b"2");
}
