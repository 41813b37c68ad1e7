/// The counts of [`LEAST`] are those of so many schedules.
pub(super) const SCHEDULES: u64 = 100_000;

/// How often each situation has to come up at least.
pub(super) const LEAST: &[(&str, u64)] = &[];
