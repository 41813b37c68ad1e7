use std::{fmt, str::FromStr};

use croner::Cron;
use jiff::{
    SignedDuration, Timestamp, Zoned,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

use crate::Slot;

/// The times at which a job is due: a pattern of cron in a time zone.
///
/// A pattern has five fields, or six with seconds first, or is a name such as `@hourly`, as the
/// crate `croner` reads it. Where daylight saving time skips or repeats times:
/// - A pattern has *fixed* times if its seconds, minutes and hours are numbers or lists of numbers.
///   Each fixed time is due once a day. If it is skipped, it is due when the gap ends. If it is
///   repeated, it is due the first time.
/// - A pattern with intervals (`*`, `/` or `-` in one of these fields) follows the local time as
///   clocks show it.
///
/// `docs/jobs-and-leaders.md` has examples.
///
/// # Examples
/// ```
/// use fenced_jobs::{Schedule, Slot};
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
    /// Whether the times are fixed, so that each is due once a day.
    is_fixed: bool,
}

/// The text is no pattern, or the time zone is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid schedule: {why}")]
pub struct InvalidSchedule {
    why: String,
}

impl Schedule {
    /// A pattern of cron in a time zone such as `UTC` or `Europe/Vienna`.
    ///
    /// If the system has no database of time zones, only `UTC` works. The feature
    /// `tzdb-bundle-always` of the crate `jiff` adds the others.
    ///
    /// # Errors
    /// [`InvalidSchedule`] with the reason. A pattern that is never due, such as `0 0 30 2 *`, is
    /// invalid, too.
    pub fn new(pattern: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        let parser = croner::parser::CronParser::builder()
            .seconds(croner::parser::Seconds::Optional)
            .build();
        let cron = parser.parse(pattern).map_err(|error| InvalidSchedule {
            why: format!("{pattern:?}: {error}"),
        })?;
        let zone = match zone {
            "UTC" => TimeZone::UTC,
            zone => TimeZone::get(zone).map_err(|error| InvalidSchedule {
                why: error.to_string(),
            })?,
        };
        // Any day will do, because the 29th of February comes within eight years.
        let some_day = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        cron.find_next_occurrence(&some_day, false)
            .map_err(|_| InvalidSchedule {
                why: format!("{pattern:?} is never due"),
            })?;
        let is_fixed = is_fixed(pattern);
        Ok(Self {
            cron,
            zone,
            is_fixed,
        })
    }

    /// The times that are due after a slot, up to now, in order. There are none if the slot is no
    /// time.
    pub fn due_since(&self, last: &Slot, now: Timestamp) -> impl Iterator<Item = Slot> + use<> {
        let last = Timestamp::from_str(last.as_str()).ok();
        let times = last.map(|last| self.after(last));
        let times = times.into_iter().flatten();
        times.take_while(move |time| *time <= now).map(Slot::from)
    }

    /// The newest time that is due; `None` if no time was due yet.
    #[must_use]
    pub fn newest(&self, now: Timestamp) -> Option<Timestamp> {
        let from = self.on_the_wall(now, CHANGE);
        let before = |from: &Zoned, inclusive| {
            let found = self.cron.find_previous_occurrence(from, inclusive).ok()?;
            Some((self.instant(&found), found))
        };
        let (mut time, mut found) = before(&from, true)?;
        while time > now {
            (time, found) = before(&found, false)?;
        }
        Some(time)
    }

    /// The next time that will be due; `None` if no time will be due.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.after(now).next()
    }

    /// The times after a moment, in order.
    fn after(&self, moment: Timestamp) -> impl Iterator<Item = Timestamp> + use<> {
        let schedule = self.clone();
        let mut last = moment;
        self.cron
            .clone()
            .iter_after(self.on_the_wall(moment, -CHANGE))
            .map(move |time| schedule.instant(&time))
            // All fixed times of a gap are due when it ends.
            .filter(move |time| {
                let is_later = *time > last;
                last = std::cmp::max(last, *time);
                is_later
            })
    }

    /// The time at which croner begins to search. For fixed times it is the local time, read in a
    /// zone without changes. The local clock may have been changed a moment ago, so the search
    /// begins earlier or later by `change`.
    fn on_the_wall(&self, moment: Timestamp, change: SignedDuration) -> Zoned {
        let zoned = moment.to_zoned(self.zone.clone());
        if !self.is_fixed {
            return zoned;
        }
        let shown = zoned.datetime().saturating_add(change);
        shown.to_zoned(TimeZone::UTC).unwrap_or(zoned)
    }

    /// The moment at which a time that croner has found is due. For a time in a gap that is the end
    /// of the gap. A time that comes twice is due the first time.
    fn instant(&self, found: &Zoned) -> Timestamp {
        if !self.is_fixed {
            return found.timestamp();
        }
        let ambiguous = self.zone.to_ambiguous_zoned(found.datetime());
        match ambiguous.offset() {
            AmbiguousOffset::Gap { before, .. } => end_of_gap(&self.zone, found.datetime(), before),
            _ => ambiguous
                .earlier()
                .map_or(found.timestamp(), |time| time.timestamp()),
        }
    }
}

/// A local clock is never changed by this much at once. The greatest change leaves out a day.
const CHANGE: SignedDuration = SignedDuration::from_hours(26);

/// The moment at which the local clock is put forward over this time.
fn end_of_gap(zone: &TimeZone, time: DateTime, before: Offset) -> Timestamp {
    let Ok(late) = before.to_timestamp(time) else {
        return Timestamp::MAX;
    };
    // By the offset before the gap, the time is after the end of the gap, or is its end.
    let behind = late.saturating_add(SignedDuration::from_secs(1));
    let change = behind.ok().and_then(|behind| zone.preceding(behind).next());
    change.map_or(late, |change| change.timestamp())
}

/// Whether seconds, minutes and hours are numbers or lists of numbers.
fn is_fixed(pattern: &str) -> bool {
    let fields: Vec<_> = pattern.split_whitespace().collect();
    let of_the_day = match fields.as_slice() {
        [minutes, hours, _, _, _] => vec![*minutes, *hours],
        [seconds, minutes, hours, _, _, _] => vec![*seconds, *minutes, *hours],
        _ => {
            return matches!(
                pattern.trim(),
                "@daily" | "@weekly" | "@monthly" | "@yearly"
            );
        }
    };
    let is_number = |field: &str| field.chars().all(|c| c.is_ascii_digit() || c == ',');
    of_the_day.into_iter().all(is_number)
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
    fn a_time_in_a_gap_is_due_once_when_the_gap_ends() {
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
    fn a_time_that_comes_twice_is_due_once_and_intervals_go_on() {
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

    /// Patterns over a change of the clock: by an hour, by half an hour, at midnight, and by a day.
    /// Each entry has the pattern, the zone, two moments, and the times that are due between them.
    const CHANGES: &[(&str, &str, [&str; 2], &[&str])] = &[
        (
            "30 2,14 * * *",
            "Europe/Vienna",
            ["2026-03-29T00:00:00Z", "2026-03-29T22:00:00Z"],
            &["2026-03-29T01:00:00Z", "2026-03-29T12:30:00Z"],
        ),
        (
            "30 2,14 * * *",
            "Europe/Vienna",
            ["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"],
            &["2026-10-25T00:30:00Z", "2026-10-25T13:30:00Z"],
        ),
        (
            "0 15,45 2,3 * * *",
            "Europe/Vienna",
            ["2026-03-29T00:00:00Z", "2026-03-29T22:00:00Z"],
            &[
                "2026-03-29T01:00:00Z",
                "2026-03-29T01:15:00Z",
                "2026-03-29T01:45:00Z",
            ],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            ["2026-10-03T00:00:00Z", "2026-10-04T00:00:00Z"],
            &["2026-10-03T15:30:00Z"],
        ),
        (
            "45 1,13 * * *",
            "Australia/Lord_Howe",
            ["2026-04-04T12:00:00Z", "2026-04-05T12:00:00Z"],
            &["2026-04-04T14:45:00Z", "2026-04-05T03:15:00Z"],
        ),
        (
            "0 0 * * *",
            "America/Sao_Paulo",
            ["2018-11-03T12:00:00Z", "2018-11-05T12:00:00Z"],
            &["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"],
        ),
        (
            "30 23 * * *",
            "America/Sao_Paulo",
            ["2018-02-17T12:00:00Z", "2018-02-18T12:00:00Z"],
            &["2018-02-18T01:30:00Z"],
        ),
        (
            "0 12 * * *",
            "Pacific/Apia",
            ["2011-12-29T12:00:00Z", "2011-12-31T00:00:00Z"],
            &[
                "2011-12-29T22:00:00Z",
                "2011-12-30T10:00:00Z",
                "2011-12-30T22:00:00Z",
            ],
        ),
        (
            "*/30 * * * *",
            "Europe/Vienna",
            ["2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z"],
            &[
                "2026-03-29T00:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-29T01:30:00Z",
            ],
        ),
    ];

    /// Catches: a time of a list that is left out, or due twice.
    #[test]
    fn each_fixed_time_is_due_once_a_day() {
        for (pattern, zone, [since, until], expected) in CHANGES {
            let schedule = Schedule::new(pattern, zone).unwrap();
            let (since, until) = (since.parse().unwrap(), until.parse().unwrap());
            let due: Vec<_> = schedule.due_since(&since, until).collect();
            let due: Vec<_> = due.iter().map(Slot::as_str).collect();
            assert_eq!(due, *expected, "{pattern} {zone}");
            for time in *expected {
                let time: Timestamp = time.parse().unwrap();
                let second = SignedDuration::from_secs(1);
                assert_eq!(schedule.newest(time), Some(time), "{pattern} {zone}");
                assert_eq!(schedule.next(time - second), Some(time), "{pattern} {zone}");
                assert_ne!(
                    schedule.newest(time - second),
                    Some(time),
                    "{pattern} {zone}"
                );
            }
        }
    }

    /// Catches: a schedule that is never due.
    #[test]
    fn a_wrong_pattern_or_zone_is_named() {
        let error = |pattern, zone| Schedule::new(pattern, zone).unwrap_err().to_string();
        assert!(error("0 0 30 2 *", "UTC").contains("never due"));
        assert!(error("every night", "UTC").contains("every night"));
        assert!(error("0 2 * * *", "Europe/Wien").contains("Europe/Wien"));
    }
}
