//! Requests for leases of etcd.

use std::time::Duration;

use lock_core::backend::Runtime;

use super::{
    client::Client,
    failure::Failure,
    queued::Life,
    wire::{GrantRequest, GrantResponse, method},
};

/// A new id for a lease that is asked for later.
pub(super) fn fresh_id(runtime: &dyn Runtime) -> i64 {
    let positive = i64::try_from(runtime.random() >> 65);
    std::cmp::max(positive.unwrap_or(0), 1)
}

/// Asks etcd for a lease that is at least this long. Its life is counted from before the request.
/// `None` if the lease was there already, because an earlier request was carried out.
pub(super) async fn grant(
    client: &Client,
    id: i64,
    ttl: Duration,
) -> Result<Option<Life>, Failure> {
    let seconds = ttl.as_millis().div_ceil(1000);
    let request = GrantRequest {
        id,
        ttl: i64::try_from(seconds).unwrap_or(i64::MAX),
    };
    let since = client.runtime.now();
    match client.call(method::GRANT, &request).await {
        Ok(GrantResponse { ttl, .. }) => Ok(Some(Life::whole(since, ttl, None))),
        Err(failure) if failure.lease_exists() => Ok(None),
        Err(failure) => Err(failure),
    }
}
