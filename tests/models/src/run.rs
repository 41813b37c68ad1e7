//! A command under a lease, and the two processes that end it in time: `palisade run`.
//!
//! Both run the [`Countdown`] that ships. Either may be stopped, continued or killed at any moment,
//! and messages to the guardian may be late without bound. The supervisor reads before it acts.
//! Ctrl-Z may stop the guardian on purpose. The command ignores SIGTERM, and one of its processes
//! ignores Ctrl-Z. Time is counted in steps of half a second. It passes only when each process that
//! can act has done the actions that are due. So the model has no slow host: the margins are for
//! slow hosts.

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
    /// After Ctrl-Z a process of the command goes on.
    OneGoesOn,
    /// The guardian continues the command without a new deadline.
    ContinuesAtOnce,
    /// SIGTERM continues the command while Ctrl-Z has stopped the guardian.
    ContinuesToEnd,
    /// The supervisor acts before it reads.
    ReadsLate,
}

/// The length of a lease, in steps.
const LEASE: u8 = 6;

/// The model stops here.
const END: u8 = 20;

/// The time in which the supervisor has to name the deadline of a command that is to go on. It is
/// the time from the SIGTERM of the guardian to the end of the lease.
const ANSWERING: u8 = 2;

/// The model: how often the lease is renewed and Ctrl-Z is pressed, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    renewals: u8,
    suspensions: u8,
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
    /// By Ctrl-Z. The other process knows, or will.
    Suspended {
        since: u8,
    },
    Stopped {
        since: u8,
    },
    Dead {
        since: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    Supervisor,
    Guardian,
}

/// A message of the guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FromGuardian {
    Confirmed(u8),
    Suspended,
    Resumed,
}

/// Everything there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u8,
    lease_ends: u8,
    renewals: u8,
    suspensions: u8,
    supervisor: Process,
    guardian: Process,
    /// Messages under way, oldest first.
    to_guardian: Vec<u8>,
    to_supervisor: Vec<FromGuardian>,
    /// Whether the supervisor needs no confirmation, because the guardian was stopped by Ctrl-Z.
    is_alone: bool,
    /// The moment until which the guardian waits for a deadline before it continues the command.
    resuming: Option<u8>,
    is_alive: bool,
    /// Whether all processes of the command are stopped.
    is_stopped: bool,
    /// Whether Ctrl-Z has stopped the guardian for longer than a lease.
    was_away: bool,
    /// Both processes failed within a lease of each other, or while Ctrl-Z had stopped one of them.
    /// For this case nothing is promised.
    is_excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Pass,
    Renew,
    /// The guardian reads a deadline.
    Tell,
    /// The supervisor reads a message.
    Hear,
    /// Ctrl-Z.
    Suspend,
    /// The shell continues the guardian.
    Resume,
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
            suspensions: 0,
            flaw: None,
        }
    }

    /// In a terminal.
    pub(crate) const fn with_ctrl_z() -> Self {
        Self {
            suspensions: 1,
            ..Self::as_built()
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
        if let (Who::Guardian, Some(end)) = (who, state.resuming) {
            return is_bereaved || end <= state.now;
        }
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
            Health::Runs | Health::Suspended { .. } => None,
            Health::Stopped { since } | Health::Dead { since } => Some(since),
        };
        let is_new = failed_at(process).is_none();
        let was_suspended = matches!(process.health, Health::Suspended { .. });
        let is_soon = |since| self.now - since < LEASE || was_suspended;
        self.is_excused |= is_new && failed_at(other).is_some_and(is_soon);
        self.process(who).health = health;
    }

    fn act(&mut self, who: Who, continues_to_end: bool) {
        let now = step(self.now);
        let is_bereaved = matches!(self.both(who).1.health, Health::Dead { .. });
        if who == Who::Guardian && self.resuming.is_some() {
            self.is_alive = false;
            return;
        }
        let process = self.process(who);
        if is_bereaved {
            process.countdown.end(now);
        }
        let due = process.countdown.due(now);
        let kills_at_once = who == Who::Supervisor && self.is_alone && !continues_to_end;
        match due {
            Some(Due::Terminate) if !kills_at_once => self.is_stopped = false,
            Some(_) => self.is_alive = false,
            None => {}
        }
    }

    fn hear(&mut self, message: FromGuardian) {
        match message {
            FromGuardian::Confirmed(deadline) => {
                self.supervisor.countdown.confirm(step(deadline));
            }
            FromGuardian::Suspended => {
                self.is_alone = true;
                self.supervisor.countdown.confirm(step(self.lease_ends));
            }
            FromGuardian::Resumed => {
                self.is_alone = false;
                self.to_guardian.push(self.lease_ends);
            }
        }
    }

    /// The guardian reads a deadline.
    fn tell(&mut self, deadline: u8) {
        let countdown = &mut self.guardian.countdown;
        countdown.confirm(step(deadline));
        let is_time_left = countdown.next() > step(self.now);
        if !countdown.is_ending() {
            self.to_supervisor.push(FromGuardian::Confirmed(deadline));
        }
        if is_time_left && self.resuming.take().is_some() {
            self.is_stopped = false;
        }
    }

    fn suspend(&mut self) {
        self.suspensions -= 1;
        self.is_stopped = true;
        self.guardian.health = Health::Suspended { since: self.now };
        self.to_supervisor.push(FromGuardian::Suspended);
    }

    fn resume(&mut self) {
        if let Health::Suspended { since } = self.guardian.health {
            self.was_away |= self.now - since > LEASE;
        }
        self.guardian.health = Health::Runs;
        self.to_supervisor.push(FromGuardian::Resumed);
        self.resuming = Some(self.now + ANSWERING);
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
            suspensions: self.suspensions,
            supervisor: process(self.margins()),
            guardian: process(self.margins().of_guardian()),
            to_guardian: Vec::new(),
            to_supervisor: Vec::new(),
            is_alone: false,
            resuming: None,
            is_alive: true,
            is_stopped: false,
            was_away: false,
            is_excused: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !state.is_alive || state.is_excused || state.now == END {
            return;
        }
        let all = [Who::Supervisor, Who::Guardian];
        let runs = state.supervisor.health == Health::Runs;
        let has_message = runs && !state.to_supervisor.is_empty();
        let reads_first = has_message && !self.is(Flaw::ReadsLate);
        let may_act = |who: &Who| *who == Who::Guardian || !reads_first;
        let due = all.into_iter().filter(|who| self.is_due(state, *who));
        actions.extend(due.filter(may_act).map(Action::Act));
        if actions.is_empty() && !reads_first {
            actions.push(Action::Pass);
        }
        if has_message {
            actions.push(Action::Hear);
        }
        // A lease that has ended is not renewed.
        let may_renew = runs && !reads_first;
        if may_renew && state.renewals > 0 && state.now < state.lease_ends {
            actions.push(Action::Renew);
        }
        if state.guardian.health == Health::Runs && !state.to_guardian.is_empty() {
            actions.push(Action::Tell);
        }
        let may_suspend = state.suspensions > 0 && !state.is_stopped;
        if state.guardian.health == Health::Runs && may_suspend {
            actions.push(Action::Suspend);
        }
        for who in all {
            match state.both(who).0.health {
                Health::Runs => actions.extend([Action::Stop(who), Action::Kill(who)]),
                Health::Suspended { .. } => actions.extend([Action::Resume, Action::Kill(who)]),
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
                if !next.is_alone {
                    next.to_guardian.push(deadline);
                }
                if next.is_alone || self.is(Flaw::CountsUnconfirmed) || self.is(Flaw::Alone) {
                    next.supervisor.countdown.confirm(step(deadline));
                }
            }
            Action::Tell => {
                let deadline = next.to_guardian.remove(0);
                next.tell(deadline);
            }
            Action::Hear => {
                let message = next.to_supervisor.remove(0);
                next.hear(message);
            }
            Action::Suspend => {
                next.suspend();
                next.is_stopped = !self.is(Flaw::OneGoesOn);
            }
            Action::Resume => {
                next.resume();
                next.is_stopped = !self.is(Flaw::ContinuesAtOnce);
            }
            Action::Act(who) => next.act(who, self.is(Flaw::ContinuesToEnd)),
            Action::Stop(who) => next.fail(who, Health::Stopped { since: now }),
            Action::Kill(who) => next.fail(who, Health::Dead { since: now }),
            Action::Continue(who) => next.process(who).health = Health::Runs,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(
                "the command is dead or stopped when its lease ends",
                |_, state: &State| {
                    let goes_on = state.is_alive && !state.is_stopped;
                    !goes_on || state.is_excused || state.now < state.lease_ends
                },
            ),
            Property::sometimes("it lives through renewals", |_, state: &State| {
                state.is_alive && state.now > 2 * LEASE
            }),
            Property::sometimes("it lives on after a short stop", |_, state: &State| {
                state.is_alive && state.now > LEASE && state.supervisor.health == Health::Runs
            }),
        ];
        if self.suspensions > 0 {
            let goes_on = "it goes on after a long Ctrl-Z";
            properties.push(Property::sometimes(goes_on, |_, state: &State| {
                state.is_alive && state.was_away && !state.is_stopped
            }));
        }
        properties
    }
}
