//! The JSON of the gateway's API, for both of its ends.

use std::fmt;

use lock_core::FencingToken;
use serde::{Deserialize, Serialize};

/// The request header that tells the recording gateway which client of the scenario speaks.
pub(crate) const CLIENT_HEADER: &str = "demo-client";

/// Asks for a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcquireBody {
    /// Length of the lease.
    pub(crate) ttl_ms: u64,
    /// How long to wait while somebody else holds it. Default: not at all.
    #[serde(default)]
    pub(crate) wait_ms: u64,
    /// A note that everybody can read while the lease is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<String>,
}

/// Asks for another period of the same lease.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewBody {
    /// Length of the period, counted from now.
    pub(crate) ttl_ms: u64,
}

/// A lease, for its holder's eyes only.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LeaseBody {
    pub(crate) resource: String,
    pub(crate) token: FencingToken,
    pub(crate) issuer: String,
    /// A secret: who knows it can pass for the holder.
    pub(crate) holder: String,
    /// As asked for. On etcd a lease has whole seconds, so that more may remain.
    pub(crate) ttl_ms: u64,
    /// What is left of it, counted from before the lock service was asked.
    pub(crate) remaining_ms: u64,
    /// The `Fencing-Token` header to send with every write, renewal and release.
    pub(crate) fencing_token: String,
}

/// A lease that goes on.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct RenewedBody {
    /// As asked for. On etcd a lease keeps the length that it was acquired with.
    pub(crate) ttl_ms: u64,
    /// What is left of it, counted from before the lock service was asked: go by this.
    pub(crate) remaining_ms: u64,
    /// The `Fencing-Token` header to send from now on: the same token, signed with the key of the
    /// moment. The one before is good for as long as its key is.
    pub(crate) fencing_token: String,
}

/// A resource as anybody may see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InspectBody {
    pub(crate) resource: String,
    /// The present holder, if there is one.
    pub(crate) lease: Option<LeaseView>,
    /// How many wait for it, if the lock service knows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) waiters: Option<u64>,
}

/// All that is held or waited for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LeasesBody {
    pub(crate) leases: Vec<InspectBody>,
}

/// What a release by force has come to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ForceReleasedBody {
    /// False if nobody held it; who held it before is shut out all the same.
    pub(crate) released: bool,
    /// The token of the lease that was ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) token: Option<FencingToken>,
    /// The token that the store has been told of: this one and those before it are shut out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) revocation: Option<FencingToken>,
}

/// A lease as anybody may see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LeaseView {
    pub(crate) token: FencingToken,
    /// Tells holders apart and gives none away.
    pub(crate) holder_fingerprint: String,
    pub(crate) remaining_ms: u64,
    /// The note that the holder left.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) metadata: Option<String>,
}

/// The new balance of an account.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BalanceBody {
    pub(crate) balance: i64,
}

/// An account.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AccountBody {
    pub(crate) id: String,
    pub(crate) balance: i64,
}

/// What a job adds to its account.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunBody {
    pub(crate) add: i64,
}

/// What became of a slot of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RanBody {
    /// False if it was done before.
    pub(crate) ran: bool,
    /// Of the account, afterwards.
    pub(crate) balance: i64,
}

/// Whether requests would get anywhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReadyBody {
    /// The lock service takes writes.
    pub(crate) lock_service: bool,
    /// The store takes writes.
    pub(crate) store: bool,
    pub(crate) shutting_down: bool,
    /// Why one of them does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reasons: Vec<String>,
}

/// Without what makes it the holder's.
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
    fn what_is_for_the_holder_only_does_not_print() {
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
