/// Counts of a manager and all its clones, in one process, since it was made.
///
/// The figures are not of one moment: they were read one after the other. With the feature
/// `metrics` the same figures are exported, see [`metric`](crate::backend::metric); the durations
/// are only exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Acquisitions that got what they asked for.
    pub grants: u64,
    /// Grants that were waited for.
    pub handoffs: u64,
    /// Acquisitions that found the resource held until their wait was over, that found it held at
    /// their only look, or that found the queue full.
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
    /// Guards whose lease was lost, each counted once. The metric has them by
    /// [reason](crate::LostReason).
    pub losses: u64,
    /// Releases and cancellations that were given up: the lease ran out by itself.
    pub abandoned: u64,
}
