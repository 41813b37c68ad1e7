//! Leases of etcd, as they are asked for.

use std::time::Duration;

use super::{
    client::Client,
    failure::Failure,
    wire::{GrantRequest, GrantResponse, method},
};
use lock_core::{Moment, support::Patience};

/// What came of asking for a lease.
#[derive(Clone, Copy, Debug)]
pub(super) enum Granted {
    /// It is new, and lives for that long, counted from before it was asked for.
    New { asked: Moment, ttl: Duration },
    /// It was there already: an earlier request was carried out.
    Existing,
}

/// Has a lease granted, at least as long as asked for.
pub(super) async fn grant(client: &Client, id: i64, ttl: Duration) -> Result<Granted, Failure> {
    let seconds = ttl.as_millis().div_ceil(1000);
    let request = GrantRequest {
        id,
        ttl: i64::try_from(seconds).unwrap_or(i64::MAX),
    };
    let asked = client.clock.now();
    let granted = client.call(method::GRANT, &request, Patience::LONG).await;
    match granted {
        Ok(GrantResponse { ttl, .. }) => Ok(Granted::New {
            asked,
            ttl: seconds_of(ttl),
        }),
        Err(failure) if failure.lease_exists() => Ok(Granted::Existing),
        Err(failure) => Err(failure),
    }
}

pub(super) fn seconds_of(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
