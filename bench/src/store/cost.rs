//! The cost of each protection of a write on Postgres, as users see it: with and without a network,
//! for one client and for many.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    load::{Load, MANY_CLIENTS, ONE_CLIENT},
    postgres,
    protections::{PROTECTIONS, Protection, Writers},
};
use crate::{figure::BoxError, pinning::Pinning};

/// How often the protections take turns.
const ROUNDS: u32 = 24;

/// The median time of one write.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) protection: Protection,
    /// The round trip of the network.
    pub(crate) network_ms: u32,
    pub(crate) clients: u32,
    pub(crate) median_us: f64,
}

/// Round trips in milliseconds; 0 is no network.
pub(crate) const NETWORKS_MS: [u32; 3] = [0, 1, 3];

pub(crate) const CLIENTS: [u32; 2] = [ONE_CLIENT.clients, MANY_CLIENTS.clients];

/// Measures all protections, on servers of their own.
pub(crate) fn measure() -> Result<Vec<Cost>, BoxError> {
    let mut costs = Vec::new();
    for network_ms in NETWORKS_MS {
        for load in [ONE_CLIENT, MANY_CLIENTS] {
            let clients = load.clients;
            eprintln!("[fence] network of {network_ms} ms, clients: {clients}");
            let medians = Pinning::CrossCore.run(medians(network_ms, load))?;
            let all = PROTECTIONS.into_iter().zip(medians);
            costs.extend(all.map(|(protection, median_us)| Cost {
                protection,
                network_ms,
                clients,
                // More digits would only be noise.
                median_us: (median_us * 10.0).round() / 10.0,
            }));
        }
    }
    Ok(costs)
}

async fn medians(network_ms: u32, load: Load) -> Result<Vec<f64>, BoxError> {
    let server = postgres::durable()?;
    if network_ms == 0 {
        let store = postgres::store(server.url().parse()?, load).await?;
        return Writers::claim(store, load)
            .await?
            .medians(ROUNDS, &PROTECTIONS)
            .await;
    }
    // Times over a network vary less.
    let load = Load {
        transactions: load.transactions.div_ceil(10),
        ..load
    };
    let round_trip = Duration::from_millis(network_ms.into());
    let (_network, address) = postgres::over_network(&server, round_trip).await?;
    let store = postgres::store(address, load).await?;
    Writers::claim(store, load)
        .await?
        .medians(ROUNDS, &PROTECTIONS)
        .await
}
