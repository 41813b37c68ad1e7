//! The part of etcd's protocol (v3) that a lock needs, written by hand, so that the build needs
//! neither a compiler of protocol buffers nor a build script. The field numbers are those of etcd's
//! `rpc.proto` and `kv.proto`. These files may get new fields, but a field never changes.

use prost::{Message, Oneof};

/// The calls that are made.
pub(super) mod method {
    pub(in super::super) const TXN: &str = "/etcdserverpb.KV/Txn";
    pub(in super::super) const DELETE: &str = "/etcdserverpb.KV/DeleteRange";
    pub(in super::super) const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
    pub(in super::super) const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
    pub(in super::super) const TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
    pub(in super::super) const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
    pub(in super::super) const WATCH: &str = "/etcdserverpb.Watch/Watch";
    pub(in super::super) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
}

/// The operator of a comparison: `EQUAL`.
const EQUAL: i32 = 0;
/// The compared revision: `CREATE`.
const BY_CREATION: i32 = 1;
/// The compared revision: `MOD`.
const BY_CHANGE: i32 = 2;
/// The order of a range, and the revision that it is sorted by: `CREATE`.
const ASCENDING: i32 = 1;
const DESCENDING: i32 = 2;
const SORT_BY_CREATION: i32 = 2;
/// Events of a watch: `DELETE`, and the filter `NOPUT`.
const DELETE: i32 = 1;
const NO_PUT: i32 = 0;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Header {
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
    #[prost(uint64, tag = "4")]
    pub(super) raft_term: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(super) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    limit: i64,
    #[prost(int32, tag = "5")]
    sort_order: i32,
    #[prost(int32, tag = "6")]
    sort_target: i32,
    #[prost(bool, tag = "8")]
    keys_only: bool,
    #[prost(int64, tag = "13")]
    max_create_revision: i64,
}

impl RangeRequest {
    /// One key.
    pub(super) fn key(key: &[u8]) -> Self {
        Self {
            key: key.to_vec(),
            ..Self::default()
        }
    }

    /// All keys with this prefix, the oldest first.
    pub(super) fn all(prefix: &[u8]) -> Self {
        Self {
            key: prefix.to_vec(),
            range_end: end_of(prefix),
            sort_order: ASCENDING,
            sort_target: SORT_BY_CREATION,
            ..Self::default()
        }
    }

    /// Keys with this prefix that come after this key in the order of their names, up to this
    /// number.
    pub(super) fn page(prefix: &[u8], after: Option<&[u8]>, limit: i64) -> Self {
        let next = |after: &[u8]| [after, b"\0"].concat();
        Self {
            key: after.map_or_else(|| prefix.to_vec(), next),
            range_end: end_of(prefix),
            limit,
            ..Self::default()
        }
    }

    /// The oldest key with this prefix.
    pub(super) fn oldest(prefix: &[u8]) -> Self {
        Self {
            limit: 1,
            ..Self::all(prefix)
        }
    }

    /// The youngest keys with this prefix.
    pub(super) fn youngest(prefix: &[u8], limit: i64) -> Self {
        Self {
            limit,
            sort_order: DESCENDING,
            ..Self::all(prefix)
        }
    }

    /// Only keys that were created before this revision.
    pub(super) const fn created_before(mut self, revision: i64) -> Self {
        self.max_create_revision = revision - 1;
        self
    }

    pub(super) const fn without_values(mut self) -> Self {
        self.keys_only = true;
        self
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
    /// The number of keys in the range, whatever the limit and whenever they were created.
    #[prost(int64, tag = "4")]
    pub(super) count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

impl DeleteRequest {
    /// One key.
    pub(super) fn key(key: &[u8]) -> Self {
        Self { key: key.to_vec() }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteResponse {
    /// How many keys were deleted.
    #[prost(int64, tag = "2")]
    pub(super) deleted: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Op {
    #[prost(oneof = "OneOp", tags = "1, 2, 3, 4")]
    op: Option<OneOp>,
}

#[derive(Clone, PartialEq, Oneof)]
enum OneOp {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRequest),
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
}

impl Op {
    pub(super) const fn range(range: RangeRequest) -> Self {
        Self {
            op: Some(OneOp::Range(range)),
        }
    }

    pub(super) fn put(key: &[u8], value: Vec<u8>, lease: i64) -> Self {
        let key = key.to_vec();
        Self {
            op: Some(OneOp::Put(PutRequest { key, value, lease })),
        }
    }

    pub(super) const fn txn(txn: TxnRequest) -> Self {
        Self {
            op: Some(OneOp::Txn(txn)),
        }
    }

    pub(super) const fn is_delete(&self) -> bool {
        matches!(self.op, Some(OneOp::Delete(_)))
    }

    pub(super) fn delete(key: &[u8]) -> Self {
        Self {
            op: Some(OneOp::Delete(DeleteRequest::key(key))),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OpResponse {
    #[prost(oneof = "OneOpResponse", tags = "1, 4")]
    response: Option<OneOpResponse>,
}

/// The operations whose answers are read. Other operations are carried out without an answer.
#[derive(Clone, PartialEq, Oneof)]
enum OneOpResponse {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "4")]
    Txn(TxnResponse),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Compare {
    #[prost(int32, tag = "1")]
    result: i32,
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(oneof = "Revision", tags = "5, 6")]
    revision: Option<Revision>,
    #[prost(bytes = "vec", tag = "64")]
    range_end: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
enum Revision {
    #[prost(int64, tag = "5")]
    Created(i64),
    #[prost(int64, tag = "6")]
    Changed(i64),
}

impl Compare {
    /// The condition that the key was created by this revision. With 0: that there is no such key.
    pub(super) fn created(key: &[u8], revision: i64) -> Self {
        Self {
            result: EQUAL,
            target: BY_CREATION,
            key: key.to_vec(),
            revision: Some(Revision::Created(revision)),
            range_end: Vec::new(),
        }
    }

    /// The condition that the key was last changed by this revision. With 0: that there is no such
    /// key.
    pub(super) fn changed(key: &[u8], revision: i64) -> Self {
        Self {
            target: BY_CHANGE,
            revision: Some(Revision::Changed(revision)),
            ..Self::created(key, revision)
        }
    }

    /// The condition that there is no key with this prefix.
    pub(super) fn none(prefix: &[u8]) -> Self {
        Self {
            range_end: end_of(prefix),
            ..Self::created(prefix, 0)
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<Op>,
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<Op>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    responses: Vec<OpResponse>,
}

impl TxnResponse {
    /// The revision of the store when it was answered.
    pub(super) fn revision(&self) -> i64 {
        self.header.as_ref().map_or(0, |header| header.revision)
    }

    /// The term of the node that has answered.
    pub(super) fn term(&self) -> u64 {
        self.header.as_ref().map_or(0, |header| header.raft_term)
    }

    /// The results of the ranges of the executed branch, in their order.
    pub(super) fn ranges(self) -> impl Iterator<Item = RangeResponse> {
        let range = |response: OpResponse| match response.response {
            Some(OneOpResponse::Range(range)) => Some(range),
            _ => None,
        };
        self.responses.into_iter().filter_map(range)
    }

    /// Whether each transaction within this one has succeeded, in their order.
    pub(super) fn each_succeeded(self) -> impl Iterator<Item = bool> {
        let succeeded = |response: OpResponse| match response.response {
            Some(OneOpResponse::Txn(txn)) => Some(txn.succeeded),
            _ => None,
        };
        self.responses.into_iter().filter_map(succeeded)
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GrantRequest {
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GrantResponse {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    /// The granted time, which may be longer than the requested one. Whole seconds.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

/// A request that only names a lease.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseId {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TimeToLiveResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    /// Whole seconds, rounded down; -1 if there is no such lease.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
    #[prost(int64, tag = "4")]
    pub(super) granted_ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeepAliveResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<Header>,
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    /// Not above 0 if there is no such lease.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

/// An answer whose content is not used.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Done {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchRequest {
    #[prost(oneof = "OneWatch", tags = "1")]
    request: Option<OneWatch>,
}

#[derive(Clone, PartialEq, Oneof)]
enum OneWatch {
    #[prost(message, tag = "1")]
    Create(WatchCreate),
}

#[derive(Clone, PartialEq, Message)]
struct WatchCreate {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(int64, tag = "3")]
    start_revision: i64,
    #[prost(int32, repeated, tag = "5")]
    filters: Vec<i32>,
}

impl WatchRequest {
    /// A watch for the deletion of a key, from this revision on.
    pub(super) fn deletion(key: &[u8], from: i64) -> Self {
        Self {
            request: Some(OneWatch::Create(WatchCreate {
                key: key.to_vec(),
                start_revision: from,
                filters: vec![NO_PUT],
            })),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchResponse {
    /// The server has ended the watch, for instance because the revision was compacted away.
    #[prost(bool, tag = "4")]
    pub(super) canceled: bool,
    #[prost(message, repeated, tag = "11")]
    events: Vec<Event>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int32, tag = "1")]
    kind: i32,
}

impl WatchResponse {
    /// Whether something was deleted.
    pub(super) fn tells_deletion(&self) -> bool {
        self.events.iter().any(|event| event.kind == DELETE)
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}

/// The end of the keys with this prefix. Our prefixes end in `/`, which has a successor.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.wrapping_add(1);
    }
    end
}
