//! A minimal client of etcd, on the same library as ours.

use std::time::Instant;

use futures_util::{StreamExt, stream};
use http::uri::PathAndQuery;
use prost::Message;
use tonic::{
    Request, Streaming,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::figure::BoxError;

const KEY: &[u8] = b"floor/key";

#[derive(Clone, PartialEq, Message)]
struct Grant {
    #[prost(int64, tag = "1")]
    ttl: i64,
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

/// An answer. Only its watch events are used.
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

#[derive(Clone, PartialEq, Message)]
struct Compare {
    /// With 1: when it was created.
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    /// An option, because a zero has to be sent, too.
    #[prost(int64, optional, tag = "5")]
    created: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Range {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    end: Vec<u8>,
    #[prost(int64, tag = "3")]
    limit: i64,
    /// With 1 and 2: the one that was created first.
    #[prost(int32, tag = "5")]
    order: i32,
    #[prost(int32, tag = "6")]
    by: i32,
}

/// One of these operations.
#[derive(Clone, PartialEq, Message)]
struct Op {
    #[prost(message, optional, tag = "1")]
    range: Option<Range>,
    #[prost(message, optional, tag = "2")]
    put: Option<Put>,
}

#[derive(Clone, PartialEq, Message)]
struct Txn {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<Op>,
    #[prost(message, repeated, tag = "3")]
    failure: Vec<Op>,
}

#[derive(Clone, PartialEq, Message)]
struct Entered {
    #[prost(bool, tag = "2")]
    succeeded: bool,
}

/// The type of an event that reports a deletion.
const DELETED: i32 = 1;

/// A connection.
#[derive(Clone)]
struct Calls(Grpc<Channel>);

/// One lease for all locks of a client, as in etcd's own recipe.
#[derive(Clone)]
pub(super) struct Session {
    calls: Calls,
    lease: i64,
}

pub(super) struct Raw {
    calls: Calls,
    /// The events of the watch, once there is a watch.
    news: Option<Streaming<Answer>>,
}

impl Calls {
    async fn connect(url: &str) -> Result<Self, BoxError> {
        let endpoint = Endpoint::from_shared(url.replacen("etcd", "http", 1))?;
        let channel = endpoint.tcp_nodelay(true).connect().await?;
        let mut grpc = Grpc::new(channel);
        grpc.ready().await?;
        Ok(Self(grpc))
    }

    async fn call<A, B>(&mut self, method: &'static str, request: A) -> Result<B, BoxError>
    where
        A: Message + 'static,
        B: Message + Default + 'static,
    {
        self.0.ready().await?;
        let codec = ProstCodec::<A, B>::default();
        let path = PathAndQuery::from_static(method);
        Ok(self
            .0
            .unary(Request::new(request), path, codec)
            .await?
            .into_inner())
    }

    async fn delete(&mut self, key: Vec<u8>) -> Result<(), BoxError> {
        let delete = Delete { key };
        let deleted = self.call::<_, Answer>("/etcdserverpb.KV/DeleteRange", delete);
        deleted.await.map(drop)
    }
}

impl Session {
    /// Connects, and gets a lease that lasts for the whole figure.
    pub(super) async fn start(url: &str) -> Result<Self, BoxError> {
        let mut calls = Calls::connect(url).await?;
        let grant = Grant { ttl: 3600 };
        let Granted { id } = calls.call("/etcdserverpb.Lease/LeaseGrant", grant).await?;
        Ok(Self { calls, lease: id })
    }

    /// Makes the key of the session in the line of that lock, and deletes it. As in the recipe, the
    /// first transaction also asks which key is the first in the line.
    pub(super) async fn cycle(&mut self, lock: &str) -> Result<(), BoxError> {
        let line = format!("recipe/{lock}/");
        let key = format!("{line}{:x}", self.lease).into_bytes();
        let first = Op {
            range: Some(Range {
                key: line.clone().into_bytes(),
                end: format!("recipe/{lock}0").into_bytes(),
                limit: 1,
                order: 1,
                by: 2,
            }),
            put: None,
        };
        let put = Op {
            range: None,
            put: Some(Put {
                key: key.clone(),
                value: Vec::new(),
                lease: self.lease,
            }),
        };
        let absent = Compare {
            target: 1,
            key: key.clone(),
            created: Some(0),
        };
        let enter = Txn {
            compare: vec![absent],
            success: vec![put, first.clone()],
            failure: vec![first],
        };
        let Entered { succeeded } = self.calls.call("/etcdserverpb.KV/Txn", enter).await?;
        if !succeeded {
            return Err("somebody else has this key".into());
        }
        self.calls.delete(key).await
    }
}

impl Raw {
    /// Connects.
    pub(super) async fn connect(url: &str) -> Result<Self, BoxError> {
        let calls = Calls::connect(url).await?;
        Ok(Self { calls, news: None })
    }

    /// Watches the one key that this client writes.
    pub(super) async fn watch(&mut self) -> Result<(), BoxError> {
        let create = Some(Delete { key: KEY.to_vec() });
        let watch = stream::iter([Watch { create }]).chain(stream::pending());
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let codec = ProstCodec::<Watch, Answer>::default();
        let mut news = self
            .calls
            .0
            .streaming(Request::new(watch), path, codec)
            .await?
            .into_inner();
        // The first answer confirms the watch.
        news.message().await?;
        self.news = Some(news);
        Ok(())
    }

    /// The time from sending a deletion until the watch reports it, in microseconds.
    pub(super) async fn deletion_to_news(&mut self) -> Result<f64, BoxError> {
        let put = Put {
            key: KEY.to_vec(),
            value: b"a holder".to_vec(),
            lease: 0,
        };
        self.calls
            .call::<_, Answer>("/etcdserverpb.KV/Put", put)
            .await?;
        let sent = Instant::now();
        self.calls.delete(KEY.to_vec()).await?;
        let news = self.news.as_mut().ok_or("it does not watch")?;
        loop {
            let answer = news.message().await?.ok_or("the watch has ended")?;
            if answer.events.iter().any(|event| event.kind == DELETED) {
                return Ok(sent.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
}
