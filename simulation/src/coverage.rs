//! How often each situation has come up: a situation that never comes up is not tested.
//!
//! `least.rs` has the least counts, and `under_way.rs` finds situations that need a memory.

mod least;
mod under_way;

use std::collections::BTreeMap;

use lock_core::backend::Decisions;

use self::{
    least::{DECISIONS, LEAST, SCHEDULES},
    under_way::UnderWay,
};
use crate::{
    judge::act::{Act, How, Outcome},
    plan::Task,
    service::{Change, Event, Fault, HowEnded, Way},
};

/// A process was stopped for longer than its lease.
pub(crate) const PAUSED: &str = "stopped beyond the lease";

/// Counts of situations, by name.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    counts: BTreeMap<&'static str, u64>,
    /// The decisions of acquisitions.
    machine: Decisions,
    under_way: UnderWay,
}

impl Coverage {
    /// The counts, in the order of the names.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(name, count)| (*name, *count))
    }

    /// How often this situation has come up.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// Adds the counts of another schedule.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in &other.counts {
            *self.counts.entry(name).or_default() += count;
        }
        for (decision, count) in &other.machine {
            *self.machine.entry(*decision).or_default() += count;
        }
    }

    /// The decisions of the state machine of an acquisition, each with its count.
    #[must_use]
    pub const fn machine(&self) -> &Decisions {
        &self.machine
    }

    /// Adds the decisions of a schedule.
    pub(crate) fn decided(&mut self, decisions: Decisions) {
        let late = |step| matches!(step, "Answer Late" | "Answer TooLate");
        for (decision, count) in &decisions {
            if late(decision.step) {
                *self.counts.entry("late grant given back").or_default() += count;
            }
        }
        self.machine = decisions;
    }

    /// The situations that came up too rarely in this number of schedules: name, count and least
    /// count.
    #[must_use]
    pub fn missing(&self, schedules: u64) -> Vec<(&'static str, u64, u64)> {
        let scaled = |least: u64| least.saturating_mul(schedules) / SCHEDULES;
        let situations = LEAST
            .iter()
            .map(|(name, least)| (*name, self.of(name), scaled(*least)));
        let machine = self.machine.iter();
        let machine: BTreeMap<_, _> = machine
            .map(|(decision, count)| (decision.to_string(), *count))
            .collect();
        let decisions = DECISIONS.iter().map(|(name, least)| {
            let count = machine.get(*name).copied().unwrap_or(0);
            (*name, count, scaled(*least))
        });
        let all = situations.chain(decisions);
        all.filter(|(_, count, least)| count < least).collect()
    }

    pub(crate) fn note(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    pub(crate) fn act(&mut self, act: &Act) {
        match act {
            Act::Begins { task, .. } => self.note(task_name(*task)),
            Act::Wrote { outcome, .. } => self.note(match outcome {
                Outcome::Committed => "write committed",
                Outcome::Unknown => "write unknown",
                Outcome::Refused => "write refused",
                Outcome::Failed => "write failed",
            }),
            Act::Refused { resource, .. } if resource.starts_with("lead:") => {
                self.note("deposed leader refused");
            }
            Act::Refused { .. } => self.note("transaction refused"),
            Act::Released {
                was_held: Some(false),
                ..
            } => self.note("release of a lease that was gone"),
            Act::Released { was_held: None, .. } => self.note("release without an answer"),
            Act::Ends { how, .. } => self.note(match how {
                How::Done => "work done",
                How::Held => "work held",
                How::Fenced => "work fenced",
                How::Failed => "work failed",
                How::Dropped => "work dropped",
            }),
            _ => {}
        }
    }

    pub(crate) fn served(&mut self, event: &Event) {
        if let Some(situation) = self.under_way.hear(event) {
            self.note(situation);
        }
        match event {
            Event::Lifted(_) => self.note("floor repaired"),
            Event::Fault(fault) => self.fault(*fault),
            Event::Arrived { copy: true, .. } => self.note("copy of a request"),
            Event::Refused(_) => self.note("request refused"),
            Event::Changed(effect) => match effect.change {
                Change::Granted { way, .. } => self.note(match way {
                    Way::Answer => "lease by an answer",
                    Way::Push => "lease by a push",
                    Way::Offer => "lease by an offer",
                }),
                Change::Joined { .. } => self.note("lease joined"),
                Change::Confirmed { .. } => self.note("offer confirmed"),
                Change::Renewed { .. } => self.note("lease renewed"),
                Change::HoldEnded { .. } => self.note("hold given back"),
                Change::Queued { .. } => self.note("place taken"),
                Change::Unqueued { .. } => self.note("place left"),
                Change::Ended { how, .. } => self.note(match how {
                    HowEnded::Released => "lease released",
                    HowEnded::LastHold => "last hold given back",
                    HowEnded::Cancelled => "lease cancelled",
                    HowEnded::Expired => "lease expired",
                    HowEnded::OfferExpired => "offer expired",
                    HowEnded::Forced { .. } => "lease forced",
                }),
            },
            _ => {}
        }
    }
}

impl Coverage {
    fn fault(&mut self, fault: Fault) {
        self.note(match fault {
            Fault::QueueLost => "fault: queue lost",
            Fault::EverythingLost => "fault: everything lost",
            Fault::FailedOver => "fault: failed over",
            Fault::Paused(_) => "fault: silent",
            Fault::Down(true) => "fault: down",
            Fault::Down(false) => return,
            Fault::ClockForward(_) => "fault: clock forward",
            Fault::ClockBack(_) => "fault: clock back",
        });
    }
}

const fn task_name(task: Task) -> &'static str {
    match task {
        Task::Section => "task section",
        Task::Try => "task try",
        Task::Lease => "task lease",
        Task::Given => "task given holder",
        Task::Owner => "task owner",
        Task::Both => "task both",
        Task::Together => "task together",
        Task::Once => "task once",
        Task::Steps => "task steps",
        Task::Lead => "task lead",
        Task::Edge => "task edge",
        Task::Force => "task force",
        Task::Inspect => "task inspect",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: least counts that do not grow with the run, and a list that is not read.
    #[test]
    fn a_situation_that_is_too_rare_is_missing() {
        let mut coverage = Coverage::default();
        let all = LEAST.len() + DECISIONS.len();
        assert_eq!(coverage.missing(SCHEDULES).len(), all);
        let (name, least) = LEAST[0];
        for _ in 0..least {
            coverage.note(name);
        }
        assert_eq!(coverage.missing(SCHEDULES).len(), all - 1);
        assert_eq!(coverage.missing(2 * SCHEDULES)[0], (name, least, 2 * least));
    }

    /// Catches: a name in a list that was changed where it is noted, which would fail every run; a
    /// rate that the plans are far from.
    #[test]
    fn a_few_schedules_reach_what_is_common() {
        const RUN: u64 = 400;
        let mut coverage = Coverage::default();
        for seed in 0..RUN {
            let plan = crate::plan::drawn_plan(seed);
            coverage.add(&crate::schedule::run(&plan, false).coverage);
        }
        // The least counts are halved, because the counts of so few schedules differ more.
        assert_eq!(coverage.missing(RUN / 2), []);
    }
}
