use std::{
    convert::Infallible,
    future,
    time::{Duration, Instant},
};

use tokio::{sync::watch, time::sleep};

use super::step::{Step, tell};
use crate::client::GatewayClient;
use palisade_gateway::wire::LeaseBody;

/// A client's knowledge of its own lease, without a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knowledge {
    pub(super) deadline: Instant,
    pub(super) renewals: u32,
    pub(super) lost: bool,
}

impl Knowledge {
    /// The knowledge from the answer to the acquire. Its deadline is too late by the time that the
    /// answer was on its way: the request waited in the queue, so the lease cannot be counted from
    /// the start of the request. The first renewal corrects that.
    pub(super) fn on_arrival(lease: &LeaseBody) -> Self {
        let left = Duration::from_millis(lease.remaining_ms);
        Self {
            deadline: Instant::now() + left,
            renewals: 0,
            lost: false,
        }
    }

    pub(super) fn live(&self) -> bool {
        !self.lost && Instant::now() < self.deadline
    }
}

/// Renews a lease every third of its length until it is lost, and then waits to be dropped.
pub(super) async fn keep(
    client: &GatewayClient,
    lease: &LeaseBody,
    knowledge: &watch::Sender<Knowledge>,
) -> Infallible {
    let ttl = Duration::from_millis(lease.ttl_ms);
    while !knowledge.borrow().lost {
        sleep(ttl / 3).await;
        let asked = Instant::now();
        match client.renew(lease).await {
            Ok(true) => knowledge.send_modify(|known| {
                known.deadline = asked + ttl;
                known.renewals += 1;
            }),
            Ok(false) => {
                tell(&Step::LeaseLost);
                knowledge.send_modify(|known| known.lost = true);
            }
            // The next try may succeed before the deadline.
            Err(error) => tracing::warn!(%error, "cannot renew"),
        }
    }
    future::pending().await
}
