use std::time::Duration;

use crate::{coverage::Coverage, judge::Broken, schedule::Report};

/// The sums of many schedules.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Totals {
    /// How many schedules.
    pub schedules: u64,
    /// In how many of them the lock service has kept its state and its clock.
    pub sound: u64,
    /// In how many of them a process was stopped for longer than its lease.
    pub paused: u64,
    /// In how many of them unfenced clients have lost a write.
    pub unfenced_lost: u64,
    /// Writes that the store has refused.
    pub refused: u64,
    /// Leases that ran out.
    pub takeovers: u64,
    /// How often each situation came up.
    pub coverage: Coverage,
    /// The schedule with the lowest seed that has broken a promise.
    pub broken: Option<(u64, Broken)>,
}

impl Totals {
    /// Adds a schedule.
    pub fn add(&mut self, seed: u64, report: Report) {
        self.merge(Self {
            schedules: 1,
            sound: u64::from(report.is_sound),
            paused: u64::from(report.is_paused),
            unfenced_lost: u64::from(report.unfenced_lost),
            refused: report.refused,
            takeovers: report.takeovers,
            coverage: report.coverage,
            broken: report.broken.map(|broken| (seed, broken)),
        });
    }

    /// Adds the sums of others.
    pub fn merge(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.sound += other.sound;
        self.paused += other.paused;
        self.unfenced_lost += other.unfenced_lost;
        self.refused += other.refused;
        self.takeovers += other.takeovers;
        self.coverage.add(&other.coverage);
        let broken = [self.broken.take(), other.broken].into_iter().flatten();
        self.broken = broken.min_by_key(|(seed, _)| *seed);
    }

    /// One line about the run so far.
    #[must_use]
    pub fn line(&self, time: Duration) -> String {
        #[expect(clippy::cast_precision_loss, reason = "for display")]
        let (schedules, lost) = (self.schedules as f64, self.unfenced_lost as f64);
        let rate = schedules / time.as_secs_f64().max(0.001);
        let lost = 100.0 * lost / schedules.max(1.0);
        format!(
            "{} schedules, {rate:.0} a second; {} situations; {} writes refused, {} leases taken \
             over; without fences {lost:.1} % lose a write",
            self.schedules,
            self.coverage.counts().count(),
            self.refused,
            self.takeovers,
        )
    }
}
