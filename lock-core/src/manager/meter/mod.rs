mod instrument;

use self::instrument::{Count, Level, Times};
use super::{lost::LostReason, stats::Stats};
use crate::backend::metric;

/// Everything that a manager counts. Counting takes no lock and never fails.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) waits: Times,
    pub(super) grants: Count,
    pub(super) handoffs: Count,
    pub(super) timeouts: Count,
    pub(super) failures: Count,
    pub(super) waiting: Level,
    pub(super) held: Level,
    pub(super) holds: Times,
    pub(super) renewals: Count,
    pub(super) renewal_failures: Count,
    pub(super) abandoned: Count,
    expired: Count,
    not_holder: Count,
    max_hold: Count,
    shut_down: Count,
}

impl Meter {
    /// A meter for one manager with this kind of lock service.
    pub(super) fn new(backend: &'static str) -> Self {
        #[cfg(feature = "metrics")]
        for metric in metric::OF_LOCKS {
            metric.describe();
        }
        let labels = &[("backend", backend)];
        let lost = |reason: LostReason| {
            let labels = [("backend", backend), ("reason", reason.label())];
            Count::new(metric::LOSSES, &labels)
        };
        Self {
            waits: Times::new(metric::ACQUIRE_WAIT, labels),
            grants: Count::new(metric::GRANTS, labels),
            handoffs: Count::new(metric::HANDOFFS, labels),
            timeouts: Count::new(metric::ACQUIRE_TIMEOUTS, labels),
            failures: Count::new(metric::ACQUIRE_FAILURES, labels),
            waiting: Level::new(metric::QUEUE_LENGTH, labels),
            held: Level::new(metric::HELD, labels),
            holds: Times::new(metric::HOLD, labels),
            renewals: Count::new(metric::RENEWALS, labels),
            renewal_failures: Count::new(metric::RENEWAL_FAILURES, labels),
            abandoned: Count::new(metric::ABANDONED, labels),
            expired: lost(LostReason::Expired),
            not_holder: lost(LostReason::NotHolder),
            max_hold: lost(LostReason::MaxHold),
            shut_down: lost(LostReason::ShutDown),
        }
    }

    pub(super) fn lost(&self, reason: LostReason) {
        match reason {
            LostReason::Expired => self.expired.add(1),
            LostReason::NotHolder => self.not_holder.add(1),
            LostReason::MaxHold => self.max_hold.add(1),
            LostReason::ShutDown => self.shut_down.add(1),
        }
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            grants: self.grants.total(),
            handoffs: self.handoffs.total(),
            timeouts: self.timeouts.total(),
            failures: self.failures.total(),
            waiting: self.waiting.now(),
            held: self.held.now(),
            renewals: self.renewals.total(),
            renewal_failures: self.renewal_failures.total(),
            losses: self.expired.total()
                + self.not_holder.total()
                + self.max_hold.total()
                + self.shut_down.total(),
            abandoned: self.abandoned.total(),
        }
    }
}
