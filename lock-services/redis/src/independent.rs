//! Redis servers that know nothing of each other.
//!
//! This module is for a crate that keeps locks on several such servers. Users do not need it, and
//! each version may change it.

use redis::{Client, aio::ConnectionLike};

use super::{
    error::translate,
    servers::{
        fitness,
        service_url::{ServiceUrl, Topology},
    },
};
use lock_core::{
    Error,
    backend::support::connecting::{self, Settings},
};

pub use super::{
    error::meaning,
    servers::{fitness::field, link::breaks_connection},
};

/// The address of each server in a URL, and a client that connects when it is first used. Takes the
/// parameters that name files.
///
/// # Errors
/// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput) for a path, a parameter or a
/// file that cannot be right, and [`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported) for
/// TLS without the feature `tls`.
pub fn servers(
    url: connecting::ServiceUrl,
    tls: bool,
    settings: &mut Settings,
) -> Result<Vec<(String, Client)>, Error> {
    let url = ServiceUrl::of(url, Topology::Standalone, tls, settings)?;
    settings.none_left("tls_ca, tls_cert and tls_key with redlock+rediss")?;
    let server = |address| {
        let client = url.servers.client(address).map_err(translate)?;
        Ok((address.to_string(), client))
    };
    url.addresses.iter().map(server).collect()
}

/// Refuses a server on which tokens would not rise, and logs a warning about a server that may
/// forget them. Returns the answer to `INFO`, which is empty if the server denies it.
///
/// # Errors
/// [`ErrorKind::Refused`](lock_core::ErrorKind::Refused) and
/// [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable); see "What is checked".
///
/// # Cancel safety
/// Cancel safe: nothing is written.
pub async fn check(connection: &mut impl ConnectionLike) -> Result<String, Error> {
    fitness::check(connection, Topology::Independent).await
}
