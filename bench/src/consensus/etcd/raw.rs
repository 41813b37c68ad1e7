//! A minimal client of etcd, on the same library as ours.

use std::time::Instant;

use futures_util::{StreamExt, stream};
use http::uri::PathAndQuery;
use lock_core::Ttl;
use prost::Message;
use tonic::{
    Request, Streaming,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use super::server::Server;
use crate::figure::BoxError;

const KEY: &[u8] = b"floor/key";

#[derive(Clone, PartialEq, Message)]
struct Grant {
    #[prost(int64, tag = "1")]
    ttl: i64,
    #[prost(int64, tag = "2")]
    id: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Granted {
    #[prost(int64, tag = "2")]
    id: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Put {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
    #[prost(int64, tag = "3")]
    lease: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Delete {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Watch {
    #[prost(message, optional, tag = "1")]
    create: Option<Delete>,
}

/// An answer of which only the watch events are used.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, repeated, tag = "11")]
    events: Vec<Event>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int32, tag = "1")]
    kind: i32,
}

/// The type of an event that reports a deletion.
const DELETED: i32 = 1;

pub(super) struct Raw {
    grpc: Grpc<Channel>,
    /// The events of its watch, once there is one.
    news: Option<Streaming<Answer>>,
}

impl Raw {
    /// Connects.
    pub(super) async fn connect(server: &Server) -> Result<Self, BoxError> {
        let endpoint = Endpoint::from_shared(format!("http://{}", server.address()))?;
        let channel = endpoint.tcp_nodelay(true).connect().await?;
        let mut grpc = Grpc::new(channel);
        grpc.ready().await?;
        Ok(Self { grpc, news: None })
    }

    /// Watches the one key that it writes.
    pub(super) async fn watch(&mut self) -> Result<(), BoxError> {
        let create = Some(Delete { key: KEY.to_vec() });
        let watch = stream::iter([Watch { create }]).chain(stream::pending());
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let codec = ProstCodec::<Watch, Answer>::default();
        let mut news = self
            .grpc
            .streaming(Request::new(watch), path, codec)
            .await?
            .into_inner();
        // The first answer says that it watches.
        news.message().await?;
        self.news = Some(news);
        Ok(())
    }

    async fn call<A, B>(&mut self, method: &'static str, request: A) -> Result<B, BoxError>
    where
        A: Message + 'static,
        B: Message + Default + 'static,
    {
        self.grpc.ready().await?;
        let codec = ProstCodec::<A, B>::default();
        let path = PathAndQuery::from_static(method);
        Ok(self
            .grpc
            .unary(Request::new(request), path, codec)
            .await?
            .into_inner())
    }

    async fn put(&mut self, lease: i64) -> Result<(), BoxError> {
        let put = Put {
            key: KEY.to_vec(),
            value: b"a holder".to_vec(),
            lease,
        };
        let put = self.call::<_, Answer>("/etcdserverpb.KV/Put", put);
        put.await.map(drop)
    }

    async fn delete(&mut self) -> Result<(), BoxError> {
        let delete = Delete { key: KEY.to_vec() };
        let delete = self.call::<_, Answer>("/etcdserverpb.KV/DeleteRange", delete);
        delete.await.map(drop)
    }

    /// A lease, a key attached to it, and the deletion of the key.
    pub(super) async fn cycle(&mut self, ttl: Ttl) -> Result<(), BoxError> {
        let ttl = i64::try_from(ttl.get().as_secs())?;
        let grant = Grant { ttl, id: 0 };
        let lease: Granted = self.call("/etcdserverpb.Lease/LeaseGrant", grant).await?;
        self.put(lease.id).await?;
        self.delete().await
    }

    /// The time from sending a deletion until the watch reports it, in microseconds.
    pub(super) async fn deletion_to_news(&mut self) -> Result<f64, BoxError> {
        self.put(0).await?;
        let sent = Instant::now();
        self.delete().await?;
        let news = self.news.as_mut().ok_or("it does not watch")?;
        loop {
            let answer = news.message().await?.ok_or("the watch has ended")?;
            if answer.events.iter().any(|event| event.kind == DELETED) {
                return Ok(sent.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
}
