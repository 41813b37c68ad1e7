//! The JSON of the gateway's API, for the gateway and for clients.

#![expect(
    clippy::exhaustive_structs,
    reason = "the document of the API lists their members"
)]

use std::{fmt, time::Duration};

use lock_core::FencingToken;
use serde::{Deserialize, Serialize};

/// Asks for a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcquireBody {
    /// The length of the lease.
    pub ttl_ms: u64,
    /// How long to wait while another client holds the lease. By default the request does not wait.
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
    /// The length of the period, counted from now.
    pub ttl_ms: u64,
}

/// A lease as only its holder may see it.
#[derive(Clone, Serialize, Deserialize)]
pub struct LeaseBody {
    /// The resource of the lease.
    pub resource: String,
    /// The fencing token.
    pub token: FencingToken,
    /// The name of the lock service.
    pub issuer: String,
    /// A secret: a client that knows it can pose as the holder.
    pub holder: String,
    /// The ttl in the request. On etcd a lease has whole seconds, so more time than this may be
    /// left.
    pub ttl_ms: u64,
    /// The time left, counted from before the request to the lock service.
    pub remaining_ms: u64,
    /// The `Fencing-Token` header to send with every write, renewal and release.
    pub fencing_token: String,
}

/// A renewed lease.
#[derive(Clone, Serialize, Deserialize)]
pub struct RenewedBody {
    /// The ttl in the request. On etcd a lease keeps the length with which it was acquired.
    pub ttl_ms: u64,
    /// The time left, counted from before the request to the lock service. Use this, and not the
    /// ttl.
    pub remaining_ms: u64,
    /// The `Fencing-Token` header to send from now on: the same token, signed with the present key.
    /// The earlier header is valid as long as its key is.
    pub fencing_token: String,
}

/// A resource as any client may see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InspectBody {
    /// Its name.
    pub resource: String,
    /// The present holder, if there is one.
    pub lease: Option<LeaseView>,
    /// The number of clients that wait for the resource, if the lock service knows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiters: Option<u64>,
}

/// All resources with a holder or waiters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeasesBody {
    /// One entry for each resource.
    pub leases: Vec<InspectBody>,
}

/// The result of a release by force.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ForceReleasedBody {
    /// False if the resource was free. In that case, too, the last holder is shut out.
    pub released: bool,
    /// The token of the lease that was ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub token: Option<FencingToken>,
    /// The token that was claimed in the store: this token and all smaller ones are shut out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub revocation: Option<FencingToken>,
}

/// A lease as any client may see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeaseView {
    /// The fencing token.
    pub token: FencingToken,
    /// Distinguishes holders without showing the holder itself.
    pub holder_fingerprint: String,
    /// The time left.
    pub remaining_ms: u64,
    /// The note of the holder.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metadata: Option<String>,
}

/// Whether requests can be served.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadyBody {
    /// The lock service takes writes.
    pub lock_service: bool,
    /// The store takes writes.
    pub store: bool,
    /// The gateway is about to stop.
    pub shutting_down: bool,
    /// The reasons why one of them takes no writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// A time in whole milliseconds, rounded to the nearest.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from((time.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

/// Does not show the secrets of the holder.
impl fmt::Debug for LeaseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseBody")
            .field("resource", &self.resource)
            .field("token", &self.token)
            .field("remaining_ms", &self.remaining_ms)
            .finish_non_exhaustive()
    }
}

/// Does not show the token.
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

    /// Catches: a logged answer with a secret that lets readers of the log write.
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
