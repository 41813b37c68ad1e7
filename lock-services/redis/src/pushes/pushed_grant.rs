use std::time::Duration;

use redis::{PushInfo, PushKind, Value};

use lock_core::{FencingToken, backend::AttemptId};

/// A grant as `queue.lua` publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) attempt: AttemptId,
    /// The digest of the holder.
    pub(super) digest: String,
    pub(super) token: FencingToken,
    /// How long the lease may be relied on, counted from `at`.
    pub(super) length: Duration,
    /// The server's clock when it granted.
    pub(super) at: Duration,
    /// The key of the lease.
    pub(super) lease: String,
}

impl Message {
    /// `None` for anything that is no grant.
    pub(super) fn read(push: &PushInfo) -> Option<Self> {
        if push.kind != PushKind::SMessage {
            return None;
        }
        let payload = match push.data.as_slice() {
            [_, Value::BulkString(payload)] => std::str::from_utf8(payload).ok()?,
            [_, Value::SimpleString(payload)] => payload,
            _ => return None,
        };
        Self::parse(payload)
    }

    fn parse(payload: &str) -> Option<Self> {
        let mut parts = payload.splitn(6, ':');
        let mut next = || parts.next();
        Some(Self {
            attempt: next()?.parse().ok()?,
            digest: next()?.to_owned(),
            token: next()?.parse().ok()?,
            length: Duration::from_millis(next()?.parse().ok()?),
            at: Duration::from_millis(next()?.parse().ok()?),
            lease: next()?.to_owned(),
        })
    }
}
