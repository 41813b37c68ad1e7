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

/// One of these.
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

#[derive(Clone, PartialEq, Message)]
struct LeaseId {
    #[prost(int64, tag = "1")]
    id: i64,
}

/// The type of an event that reports a deletion.
const DELETED: i32 = 1;

/// A connection.
#[derive(Clone)]
struct Calls(Grpc<Channel>);

/// One lease for all locks of a client, which is kept alive, as etcd's own recipe has it.
#[derive(Clone)]
pub(super) struct Session {
    calls: Calls,
    lease: i64,
}

pub(super) struct Raw {
    calls: Calls,
    /// The events of its watch, once there is one.
    news: Option<Streaming<Answer>>,
}

impl Calls {
    async fn connect(server: &Server) -> Result<Self, BoxError> {
        let endpoint = Endpoint::from_shared(format!("http://{}", server.address()))?;
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
}

impl Session {
    /// Connects, and has a lease granted.
    pub(super) async fn start(server: &Server, ttl: Ttl) -> Result<Self, BoxError> {
        let mut calls = Calls::connect(server).await?;
        let ttl = i64::try_from(ttl.get().as_secs())?;
        let grant = Grant { ttl, id: 0 };
        let Granted { id } = calls.call("/etcdserverpb.Lease/LeaseGrant", grant).await?;
        Ok(Self { calls, lease: id })
    }

    /// Keeps the lease alive for its ttl.
    pub(super) async fn keep_alive(&mut self) -> Result<(), BoxError> {
        let requests = stream::iter([LeaseId { id: self.lease }]).chain(stream::pending());
        let path = PathAndQuery::from_static("/etcdserverpb.Lease/LeaseKeepAlive");
        let codec = ProstCodec::<LeaseId, Answer>::default();
        self.calls.0.ready().await?;
        let answers = self.calls.0.streaming(Request::new(requests), path, codec);
        answers.await?.into_inner().message().await?;
        Ok(())
    }

    /// The key of the session in the line of that lock, and its deletion. As in the recipe, the
    /// first transaction asks who is the first in the line, too.
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
        let delete = Delete { key };
        let deleted = self
            .calls
            .call::<_, Answer>("/etcdserverpb.KV/DeleteRange", delete);
        deleted.await.map(drop)
    }
}

impl Raw {
    /// Connects.
    pub(super) async fn connect(server: &Server) -> Result<Self, BoxError> {
        let calls = Calls::connect(server).await?;
        Ok(Self { calls, news: None })
    }

    /// Watches the one key that it writes.
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
        // The first answer says that it watches.
        news.message().await?;
        self.news = Some(news);
        Ok(())
    }

    async fn put(&mut self, lease: i64) -> Result<(), BoxError> {
        let put = Put {
            key: KEY.to_vec(),
            value: b"a holder".to_vec(),
            lease,
        };
        let put = self.calls.call::<_, Answer>("/etcdserverpb.KV/Put", put);
        put.await.map(drop)
    }

    async fn delete(&mut self) -> Result<(), BoxError> {
        let delete = Delete { key: KEY.to_vec() };
        let delete = self
            .calls
            .call::<_, Answer>("/etcdserverpb.KV/DeleteRange", delete);
        delete.await.map(drop)
    }

    /// A lease, a key attached to it, and the deletion of the key.
    pub(super) async fn cycle(&mut self, ttl: Ttl) -> Result<(), BoxError> {
        let ttl = i64::try_from(ttl.get().as_secs())?;
        let grant = Grant { ttl, id: 0 };
        let lease: Granted = self
            .calls
            .call("/etcdserverpb.Lease/LeaseGrant", grant)
            .await?;
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
