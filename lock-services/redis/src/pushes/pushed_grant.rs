use std::time::Duration;

use redis::{PushInfo, PushKind, Value};

use lock_core::{FencingToken, backend::AttemptId};

/// A grant as the scripts publish it, or as the answer to a release has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) attempt: AttemptId,
    /// The digest of the holder.
    pub(super) digest: String,
    pub(super) token: FencingToken,
    /// The time for which the lease may be relied on, counted from `at`.
    pub(super) length: Duration,
    /// The time of the server's clock when it granted the lease.
    pub(super) at: Duration,
    /// The key of the lease.
    pub(super) lease: String,
}

impl Message {
    /// `None` for anything that is no grant.
    pub(super) fn of_push(push: &PushInfo) -> Option<Self> {
        match push.data.as_slice() {
            [_, payload] if push.kind == PushKind::SMessage => Self::read(payload),
            _ => None,
        }
    }

    /// `None` for anything that is no grant.
    pub(crate) fn read(payload: &Value) -> Option<Self> {
        match payload {
            Value::BulkString(payload) => Self::parse(std::str::from_utf8(payload).ok()?),
            Value::SimpleString(payload) => Self::parse(payload),
            _ => None,
        }
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
