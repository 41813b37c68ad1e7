use std::{fmt, str::FromStr};

use croner::Cron;
use jiff::{Timestamp, Zoned, tz::TimeZone};

use super::Slot;

/// When a job is due: a pattern of cron in a time zone.
///
/// Five fields, or six with seconds first, and names such as `@hourly`, as the crate `croner` reads
/// them. It also decides what becomes of times that daylight saving skips or repeats: a fixed time
/// that is skipped is due when the gap ends, and one that is repeated is due the first time only; a
/// pattern with intervals follows the clock on the wall. `docs/jobs-and-leaders.md` has examples.
///
/// # Examples
/// ```
/// use fenced_store::jobs::{Schedule, Slot};
///
/// let nightly = Schedule::new("0 2 * * *", "Europe/Vienna").unwrap();
/// let last: Slot = "2026-11-25T01:00:00Z".parse().unwrap();
/// let now = "2026-11-27T12:00:00Z".parse().unwrap();
/// let due: Vec<_> = nightly.due_since(&last, now).collect();
/// assert_eq!(due.len(), 2);
/// assert_eq!(due[1].as_str(), "2026-11-27T01:00:00Z");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
}

/// A pattern that is none, or a time zone that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid schedule: {why}")]
pub struct InvalidSchedule {
    why: String,
}

impl Schedule {
    /// A pattern of cron in a time zone such as `UTC` or `Europe/Vienna`.
    ///
    /// Where the system has no database of time zones, switch on the feature `tzdb-bundle-always`
    /// of the crate `jiff`.
    ///
    /// # Errors
    /// [`InvalidSchedule`], which says what is wrong.
    pub fn new(pattern: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        let parser = croner::parser::CronParser::builder()
            .seconds(croner::parser::Seconds::Optional)
            .build();
        let cron = parser.parse(pattern).map_err(|error| InvalidSchedule {
            why: format!("{pattern:?}: {error}"),
        })?;
        let zone = TimeZone::get(zone).map_err(|error| InvalidSchedule {
            why: error.to_string(),
        })?;
        Ok(Self { cron, zone })
    }

    /// The times that are due after a slot, up to now, in order. None if the slot is no time.
    pub fn due_since(&self, last: &Slot, now: Timestamp) -> impl Iterator<Item = Slot> + use<> {
        let last = Timestamp::from_str(last.as_str()).ok();
        let times = last.map(|last| self.cron.iter_after(last.to_zoned(self.zone.clone())));
        let times = times
            .into_iter()
            .flatten()
            .map(|time: Zoned| time.timestamp());
        times.take_while(move |time| *time <= now).map(Slot::from)
    }

    /// The newest time that is due; `None` if there never was one.
    #[must_use]
    pub fn newest(&self, now: Timestamp) -> Option<Timestamp> {
        let now = now.to_zoned(self.zone.clone());
        let newest = self.cron.find_previous_occurrence(&now, true);
        newest.ok().map(|time| time.timestamp())
    }

    /// The next time that will be due; `None` if there never will be one.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let now = now.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&now, false);
        next.ok().map(|time| time.timestamp())
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("pattern", &self.cron.as_str())
            .field("zone", &self.zone.iana_name())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(pattern: &str, last: &str, now: &str) -> Vec<String> {
        let schedule = Schedule::new(pattern, "Europe/Vienna").unwrap();
        let (last, now) = (last.parse().unwrap(), now.parse().unwrap());
        let due = schedule.due_since(&last, now);
        due.map(|slot| slot.to_string()).collect()
    }

    /// On 2026-03-29 there is no time between 2:00 and 3:00.
    /// Catches: a job that is left out when the clocks go forward.
    #[test]
    fn what_falls_into_a_gap_is_due_once_when_it_ends() {
        let nights = due("30 2 * * *", "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z");
        let expected = [
            "2026-03-28T01:30:00Z",
            "2026-03-29T01:00:00Z",
            "2026-03-30T00:30:00Z",
        ];
        assert_eq!(nights, expected);
    }

    /// On 2026-10-25 the time from 2:00 to 3:00 comes twice.
    /// Catches: a job that runs twice when the clocks go back.
    #[test]
    fn what_comes_twice_is_due_once_and_intervals_go_on() {
        let nights = due("30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
        assert_eq!(nights, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let hours = due("0 * * * *", "2026-10-24T23:30:00Z", "2026-10-25T02:30:00Z");
        let expected = [
            "2026-10-25T00:00:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T02:00:00Z",
        ];
        assert_eq!(hours, expected);
    }

    /// Catches: a schedule that is never due.
    #[test]
    fn a_wrong_pattern_or_zone_is_named() {
        let error = |pattern, zone| Schedule::new(pattern, zone).unwrap_err().to_string();
        assert!(error("every night", "UTC").contains("every night"));
        assert!(error("0 2 * * *", "Europe/Wien").contains("Europe/Wien"));
    }
}
