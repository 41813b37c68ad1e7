//! A command under a lease, and the two processes that end it in time: `palisade run`.
//!
//! Both run the [`Countdown`] that ships. Either may be stopped, continued or killed at any moment,
//! and messages between them may be late without bound. The command ignores SIGTERM. Time is
//! counted in steps of half a second. It passes only when each process that can act has done the
//! actions that are due. So the model has no slow host: the margins are for slow hosts.

#[path = "../../../palisade-cli/src/run/boot_time.rs"]
#[allow(dead_code, reason = "the model has a clock of its own")]
mod boot_time;
#[path = "../../../palisade-cli/src/run/countdown.rs"]
#[allow(dead_code, reason = "the program uses more of it")]
mod countdown;
mod tests;

use std::time::Duration;

use stateright::{Model, Property};

use self::{
    boot_time::BootTime,
    countdown::{Countdown, Due, Margins},
};

/// One rule left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The supervisor counts on a deadline that the guardian has not confirmed.
    CountsUnconfirmed,
    /// The guardian ends the command only when the supervisor is dead.
    OnlyTheDead,
    /// SIGKILL comes when the lease ends, and not before.
    NoMargin,
    /// The supervisor has no guardian.
    Alone,
}

/// The length of a lease, in steps.
const LEASE: u8 = 6;

/// The model stops here.
const END: u8 = 20;

/// The model: how often the lease is renewed, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    renewals: u8,
    flaw: Option<Flaw>,
}

flawed!(Run);

/// One of the two processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    countdown: Countdown,
    health: Health,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Health {
    Runs,
    Stopped { since: u8 },
    Dead { since: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    Supervisor,
    Guardian,
}

/// Everything there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u8,
    lease_ends: u8,
    renewals: u8,
    supervisor: Process,
    guardian: Process,
    /// Deadlines under way, oldest first.
    to_guardian: Vec<u8>,
    confirmed: Vec<u8>,
    is_alive: bool,
    /// Both processes failed within a lease of each other. For this case nothing is promised.
    is_excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Pass,
    Renew,
    /// The guardian reads a deadline.
    Tell,
    /// The supervisor reads a confirmation.
    Confirm,
    /// A process does the action that is due.
    Act(Who),
    Stop(Who),
    Continue(Who),
    Kill(Who),
}

fn step(steps: u8) -> BootTime {
    BootTime::after_start(Duration::from_millis(500) * u32::from(steps))
}

impl Run {
    /// As it is built.
    pub(crate) const fn as_built() -> Self {
        Self {
            renewals: 2,
            flaw: None,
        }
    }

    /// SIGTERM comes a step before SIGKILL, and SIGKILL two steps before the lease ends. The
    /// guardian sends each signal one step later.
    fn margins(&self) -> Margins {
        let ttl = match self.is(Flaw::NoMargin) {
            true => Duration::ZERO,
            false => Duration::from_secs(10),
        };
        Margins::new(ttl, Duration::from_millis(500))
    }

    /// Whether a process that runs has something to do at once.
    fn is_due(&self, state: &State, who: Who) -> bool {
        let (process, other) = state.both(who);
        let guards = who == Who::Supervisor || !self.is(Flaw::Alone);
        if !state.is_alive || process.health != Health::Runs || !guards {
            return false;
        }
        let is_bereaved = matches!(other.health, Health::Dead { .. });
        let by_time = who == Who::Supervisor || !self.is(Flaw::OnlyTheDead);
        let is_time = process.countdown.next() <= step(state.now);
        is_bereaved && !process.countdown.is_ending() || by_time && is_time
    }
}

impl State {
    /// A process, and the other one.
    const fn both(&self, who: Who) -> (&Process, &Process) {
        match who {
            Who::Supervisor => (&self.supervisor, &self.guardian),
            Who::Guardian => (&self.guardian, &self.supervisor),
        }
    }

    const fn process(&mut self, who: Who) -> &mut Process {
        match who {
            Who::Supervisor => &mut self.supervisor,
            Who::Guardian => &mut self.guardian,
        }
    }

    fn fail(&mut self, who: Who, health: Health) {
        let (process, other) = self.both(who);
        let failed_at = |process: &Process| match process.health {
            Health::Runs => None,
            Health::Stopped { since } | Health::Dead { since } => Some(since),
        };
        let is_new = failed_at(process).is_none();
        let is_soon = failed_at(other).is_some_and(|since| self.now - since < LEASE);
        self.is_excused |= is_new && is_soon;
        self.process(who).health = health;
    }

    fn act(&mut self, who: Who) {
        let now = step(self.now);
        let is_bereaved = matches!(self.both(who).1.health, Health::Dead { .. });
        let process = self.process(who);
        if is_bereaved {
            process.countdown.end(now);
        }
        if process.countdown.due(now) == Some(Due::Kill) {
            self.is_alive = false;
        }
    }
}

impl Model for Run {
    type State = State;
    type Action = Action;

    /// The command was just started.
    fn init_states(&self) -> Vec<State> {
        let process = |margins| Process {
            countdown: Countdown::new(margins, step(LEASE)),
            health: Health::Runs,
        };
        vec![State {
            now: 0,
            lease_ends: LEASE,
            renewals: self.renewals,
            supervisor: process(self.margins()),
            guardian: process(self.margins().of_guardian()),
            to_guardian: Vec::new(),
            confirmed: Vec::new(),
            is_alive: true,
            is_excused: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !state.is_alive || state.is_excused || state.now == END {
            return;
        }
        let all = [Who::Supervisor, Who::Guardian];
        let due = all.into_iter().filter(|who| self.is_due(state, *who));
        actions.extend(due.map(Action::Act));
        if actions.is_empty() {
            actions.push(Action::Pass);
        }
        let supervisor_runs = state.supervisor.health == Health::Runs;
        // A lease that has ended is not renewed.
        if supervisor_runs && state.renewals > 0 && state.now < state.lease_ends {
            actions.push(Action::Renew);
        }
        if state.guardian.health == Health::Runs && !state.to_guardian.is_empty() {
            actions.push(Action::Tell);
        }
        if supervisor_runs && !state.confirmed.is_empty() {
            actions.push(Action::Confirm);
        }
        for who in all {
            match state.both(who).0.health {
                Health::Runs => actions.extend([Action::Stop(who), Action::Kill(who)]),
                Health::Stopped { .. } => actions.push(Action::Continue(who)),
                Health::Dead { .. } => {}
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        let now = state.now;
        match action {
            Action::Pass => next.now += 1,
            Action::Renew => {
                let deadline = now + LEASE;
                next.lease_ends = deadline;
                next.renewals -= 1;
                next.to_guardian.push(deadline);
                if self.is(Flaw::CountsUnconfirmed) || self.is(Flaw::Alone) {
                    next.supervisor.countdown.confirm(step(deadline));
                }
            }
            Action::Tell => {
                let deadline = next.to_guardian.remove(0);
                next.guardian.countdown.confirm(step(deadline));
                next.confirmed.push(deadline);
            }
            Action::Confirm => {
                let deadline = next.confirmed.remove(0);
                next.supervisor.countdown.confirm(step(deadline));
            }
            Action::Act(who) => next.act(who),
            Action::Stop(who) => next.fail(who, Health::Stopped { since: now }),
            Action::Kill(who) => next.fail(who, Health::Dead { since: now }),
            Action::Continue(who) => next.process(who).health = Health::Runs,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "the command is dead when its lease ends",
                |_, state: &State| {
                    !state.is_alive || state.is_excused || state.now < state.lease_ends
                },
            ),
            Property::sometimes("it lives through renewals", |_, state: &State| {
                state.is_alive && state.now > 2 * LEASE
            }),
            Property::sometimes("it lives on after a short stop", |_, state: &State| {
                state.is_alive && state.now > LEASE && state.supervisor.health == Health::Runs
            }),
        ]
    }
}
