use std::time::Duration;

use lock_core::{Capabilities, Extension, Fairness, Fencing, InitialToken, Waking};

/// How the service hands a lease on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The end of a lease grants the next lease with its whole length, and pushes it.
    Pushes,
    /// The end of a lease pushes a short lease to the next waiter, who has to confirm it. A waiter
    /// that does not confirm is passed over until it asks again.
    Offers,
    /// The first waiter gets the lease when the waiter looks. A waiter that looks too rarely loses
    /// its place.
    Polls,
    /// As `Polls`, but the end of a lease asks the first waiter to look.
    Hints,
    /// There is no queue: the first look after the end of a lease gets the next lease.
    Unqueued,
}

/// The properties of a service. They do not change.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How the service hands a lease on.
    pub variant: Variant,
    /// Where the counter starts, also after a loss of everything.
    pub initial: InitialToken,
    /// The answer of [`Requests::hears`](lock_core::backend::Requests::hears): without it an
    /// attempt takes a place in the queue only after a moment.
    pub hears: bool,
    /// How long a client waits for an answer, by its own clock.
    pub request_timeout: Duration,
    /// When a waiter looks again, at the latest.
    pub look_again: Duration,
    /// How long a place in the queue is kept for a waiter that does not look: longer than
    /// `look_again`.
    pub place_ttl: Duration,
    /// The length of a lease that is not confirmed yet.
    pub offer_ttl: Duration,
    /// How long an ended acquisition is remembered: for as long as a late request of it may arrive.
    pub ended_ttl: Duration,
}

impl Variant {
    /// Whether a free resource is kept for the first waiter, who looks by itself.
    pub(super) const fn keeps_for_first(self) -> bool {
        matches!(self, Self::Polls | Self::Hints)
    }
}

impl Settings {
    /// The usual settings of this variant.
    #[must_use]
    pub const fn new(variant: Variant) -> Self {
        let polls = matches!(variant, Variant::Polls);
        let is_kept = variant.keeps_for_first();
        Self {
            variant,
            initial: InitialToken::Clock,
            hears: !polls,
            request_timeout: Duration::from_secs(1),
            look_again: Duration::from_millis(if polls { 100 } else { 300 }),
            place_ttl: Duration::from_secs(if is_kept { 3 } else { 30 }),
            offer_ttl: Duration::from_secs(2),
            ended_ttl: Duration::from_secs(60),
        }
    }

    /// The promises of such a service. A service without a queue is like Redlock: it has no holds,
    /// either, and grants one resource at a time.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let queued = |waking| {
            Capabilities::new(Fencing::BestEffort, Fairness::Fifo, waking).extended(Extension::ALL)
        };
        match self.variant {
            Variant::Pushes | Variant::Offers | Variant::Hints => queued(Waking::Pushed),
            Variant::Polls => queued(Waking::Polled),
            Variant::Unqueued => {
                Capabilities::new(Fencing::BestEffort, Fairness::None, Waking::Polled).extended(&[
                    Extension::Metadata,
                    Extension::ForceRelease,
                    Extension::List,
                ])
            }
        }
    }
}
