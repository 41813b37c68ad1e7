/// Counts of a manager and all its clones, in one process, since it was made.
///
/// A snapshot: the figures were read one after the other. With the feature `metrics` the same
/// figures are exported, see [`metric`](crate::metric); the durations are only exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Acquisitions that got what they asked for.
    pub grants: u64,
    /// Grants that were waited for.
    pub handoffs: u64,
    /// Acquisitions that found the resource held until their wait was over, or at their only look,
    /// or that found the queue full.
    pub timeouts: u64,
    /// Acquisitions that ended with any other error.
    pub failures: u64,
    /// Acquisitions that wait now.
    pub waiting: u64,
    /// Guards whose lease is neither lost nor released.
    pub held: u64,
    /// Renewals by the watchdog that succeeded.
    pub renewals: u64,
    /// Renewals by the watchdog that failed. Each is repeated while its lease lives.
    pub renewal_failures: u64,
    /// Guards whose lease was lost, each counted once.
    pub losses: Losses,
    /// Releases and cancellations that were given up: the lease ran out by itself.
    pub abandoned: u64,
}

/// Losses by reason, see [`LostReason`](crate::LostReason).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// A pause, or an unreachable lock service.
    pub expired: u64,
    /// Held by another holder, or by nobody.
    pub not_holder: u64,
    /// Reached its `max_hold`.
    pub max_hold: u64,
    /// The manager was shut down, or its watchdog has ended without that.
    pub shut_down: u64,
}

impl Losses {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.expired + self.not_holder + self.max_hold + self.shut_down
    }
}
