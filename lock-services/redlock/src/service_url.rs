//! The URL of a lock service.

use std::time::Duration;

use redis::Client;

use lock_core::{
    Error,
    backend::{
        ConnectOptions,
        support::connecting::{ServiceUrl, Settings, invalid},
    },
};
use palisade_redis::independent;

/// The number of nodes that there may be.
const NODES: std::ops::RangeInclusive<usize> = 3..=15;

/// Reads a URL, and the files that it names. Returns the address of each node, with a client that
/// connects when it is first used.
pub(super) fn read(options: &ConnectOptions) -> Result<(Vec<(String, Client)>, Settings), Error> {
    let bounds = Duration::from_millis(5)..=Duration::from_secs(10);
    let mut settings = options.read(Duration::from_millis(250), bounds)?;
    let url = ServiceUrl::parse(&settings.server, "redlock+redis://host:port,host:port,..")?;
    let tls = match &*url.scheme {
        "redlock+redis" => false,
        "redlock+rediss" => true,
        _ => {
            return Err(invalid(
                "the URL is not redlock+redis://host:port,host:port,..",
            ));
        }
    };
    let nodes = independent::servers(url, tls, &mut settings)?;
    let count = nodes.len();
    if count.is_multiple_of(2) || !NODES.contains(&count) {
        return Err(invalid(format!(
            "{count} nodes: there have to be 3 to 15, and an odd number, because an even one \
             survives no more failures than one node less",
        )));
    }
    for (index, (address, _)) in nodes.iter().enumerate() {
        if nodes[..index].iter().any(|(other, _)| other == address) {
            return Err(invalid(format!("the node {address} is named twice")));
        }
    }
    Ok((nodes, settings))
}
