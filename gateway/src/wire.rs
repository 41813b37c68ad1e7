//! The JSON of the gateway's API, for both of its ends.

#![expect(
    clippy::exhaustive_structs,
    reason = "the document of the API says what is in them"
)]

use std::{fmt, time::Duration};

use lock_core::FencingToken;
use serde::{Deserialize, Serialize};

/// Asks for a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcquireBody {
    /// Length of the lease.
    pub ttl_ms: u64,
    /// How long to wait while another client holds it. Default: not at all.
    #[serde(default)]
    pub wait_ms: u64,
    /// A note that every client can read while the lease is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}

/// Asks for another period of the same lease.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenewBody {
    /// Length of the period, counted from now.
    pub ttl_ms: u64,
}

/// A lease, for its holder's eyes only.
#[derive(Clone, Serialize, Deserialize)]
pub struct LeaseBody {
    /// The resource of the lease.
    pub resource: String,
    /// The fencing token.
    pub token: FencingToken,
    /// The name of the lock service.
    pub issuer: String,
    /// A secret: a client that knows it can pass for the holder.
    pub holder: String,
    /// As asked for. On etcd a lease has whole seconds, so that more may remain.
    pub ttl_ms: u64,
    /// The time left, counted from before the lock service was asked.
    pub remaining_ms: u64,
    /// The `Fencing-Token` header to send with every write, renewal and release.
    pub fencing_token: String,
}

/// A lease that goes on.
#[derive(Clone, Serialize, Deserialize)]
pub struct RenewedBody {
    /// As asked for. On etcd a lease keeps the length that it was acquired with.
    pub ttl_ms: u64,
    /// The time left, counted from before the lock service was asked: go by this.
    pub remaining_ms: u64,
    /// The `Fencing-Token` header to send from now on: the same token, signed with the key of the
    /// moment. The one before is good for as long as its key is.
    pub fencing_token: String,
}

/// A resource as any client may see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InspectBody {
    /// Its name.
    pub resource: String,
    /// The present holder, if there is one.
    pub lease: Option<LeaseView>,
    /// How many wait for it, if the lock service knows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiters: Option<u64>,
}

/// All resources with a holder or waiters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeasesBody {
    /// One for each resource.
    pub leases: Vec<InspectBody>,
}

/// The result of a release by force.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ForceReleasedBody {
    /// False if it was free; the last holder is shut out all the same.
    pub released: bool,
    /// The token of the lease that was ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub token: Option<FencingToken>,
    /// The token that the store has claimed: this one and those before it are shut out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub revocation: Option<FencingToken>,
}

/// A lease as anybody may see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeaseView {
    /// The fencing token.
    pub token: FencingToken,
    /// Tells holders apart and gives none away.
    pub holder_fingerprint: String,
    /// The time left of it.
    pub remaining_ms: u64,
    /// The note that the holder left.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metadata: Option<String>,
}

/// Whether requests would get anywhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadyBody {
    /// The lock service takes writes.
    pub lock_service: bool,
    /// The store takes writes.
    pub store: bool,
    /// The gateway is about to end.
    pub shutting_down: bool,
    /// Why one of them does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// A time in whole milliseconds, rounded to the nearest.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from((time.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

/// Without the secrets that make it the holder's.
impl fmt::Debug for LeaseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseBody")
            .field("resource", &self.resource)
            .field("token", &self.token)
            .field("remaining_ms", &self.remaining_ms)
            .finish_non_exhaustive()
    }
}

/// Without the token.
impl fmt::Debug for RenewedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewedBody")
            .field("remaining_ms", &self.remaining_ms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Catches: a log of an answer that lets its reader write.
    #[test]
    fn secrets_of_the_holder_do_not_print() {
        let lease: LeaseBody = serde_json::from_value(json!({
            "resource": "account:1",
            "token": 33,
            "issuer": "memory",
            "holder": "secret-1",
            "ttl_ms": 1000,
            "remaining_ms": 999,
            "fencing_token": "secret-2",
        }))
        .unwrap();
        let renewed: RenewedBody = serde_json::from_value(json!({
            "ttl_ms": 1000,
            "remaining_ms": 999,
            "fencing_token": "secret-3",
        }))
        .unwrap();
        let shown = format!("{lease:?} {renewed:?}");
        assert!(
            shown.contains("account:1") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
