//! A lock service for simulations, with the network between it and its clients.
//!
//! [`Service`] is the service, and [`SimBackend`] is the end of the network at one client. All
//! events are reported to an [`Observe`].

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "plans build them, and checkers tell all of them apart"
)]

mod asker;
mod attempting;
mod backend;
mod in_words;
mod network;
mod observe;
mod server;
mod settings;
mod table;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use lock_core::backend::{Moment, Runtime, support::lock};

use self::{asker::Client, network::Network, server::Server};
pub use self::{
    backend::SimBackend,
    network::{Fate, Fates, Leg},
    observe::{
        Burial, Change, Effect, Event, Fault, HowEnded, Kind, MessageId, Observe, Sent, Way,
    },
    server::ServerCopy,
    settings::{Settings, Variant},
    table::{LeaseLeft, LeftBehind},
};

/// A lock service on one server, behind a network. Clones are the same service.
///
/// The server and the network run on one runtime, which has to outlive all messages.
#[derive(Clone, Debug)]
pub struct Service {
    network: Arc<Network>,
    settings: Settings,
}

impl Service {
    /// A new, empty service.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    #[must_use]
    pub fn new(
        settings: Settings,
        runtime: Arc<dyn Runtime>,
        fates: impl Fates + 'static,
        observer: impl Observe + 'static,
    ) -> Self {
        let server = Server::new(settings);
        Self {
            network: Network::new(server, runtime, Box::new(fates), Box::new(observer)),
            settings,
        }
    }

    /// The end of the network at a client with this number, which no other client has.
    #[must_use]
    pub fn client(&self, number: u32, runtime: Arc<dyn Runtime>) -> SimBackend {
        let client = Client::new(number, runtime);
        SimBackend::new(Arc::clone(&self.network), client, self.settings)
    }

    /// How many messages have not arrived yet. An answer or a push that is lost does not count.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.network.under_way()
    }

    /// The leases that live now, and the places in queues.
    #[must_use]
    pub fn left_behind(&self) -> LeftBehind {
        let now = self.network.now();
        lock(&self.network.server).left_behind(now)
    }

    /// All places in queues are gone; waiters find out when they look.
    pub fn lose_queue(&self) {
        self.suffer(Fault::QueueLost);
    }

    /// The server comes back empty, and its counter starts anew.
    pub fn lose_everything(&self) {
        self.suffer(Fault::EverythingLost);
    }

    /// The present state, for a later failover.
    #[must_use]
    pub fn copy(&self) -> ServerCopy {
        lock(&self.network.server).copy()
    }

    /// The service goes on as this copy, which lacks everything that has happened since.
    pub fn fail_over_to(&self, copy: ServerCopy) {
        lock(&self.network.server).fail_over_to(copy);
        self.network.observe(Event::Fault(Fault::FailedOver));
    }

    /// Requests that arrive before this moment of the network's clock are read then.
    pub fn pause(&self, until: Moment) {
        self.suffer(Fault::Paused(until));
    }

    /// Whether the server refuses connections. Requests that wait for a paused server are lost.
    pub fn set_down(&self, is_down: bool) {
        self.suffer(Fault::Down(is_down));
    }

    /// The server's clock jumps forward: leases end sooner.
    pub fn step_clock_forward(&self, by: Duration) {
        self.suffer(Fault::ClockForward(by));
    }

    /// The server's clock jumps back, by a day at most in all: leases end later.
    pub fn step_clock_back(&self, by: Duration) {
        self.suffer(Fault::ClockBack(by));
    }

    fn suffer(&self, fault: Fault) {
        lock(&self.network.server).suffer(fault);
        self.network.observe(Event::Fault(fault));
    }
}
