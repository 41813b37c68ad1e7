//! Decides when a command has to end. Supervisor and guardian have a countdown each, and neither
//! needs the other one to decide.

use std::time::Duration;

use super::boot_time::BootTime;

/// The times before the end of the lease at which the signals are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Margins {
    /// From SIGTERM to SIGKILL.
    grace: Duration,
    /// From SIGKILL to the end of the lease.
    kill: Duration,
}

/// A signal that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Due {
    Terminate,
    Kill,
}

/// The end of a command, unless the end is postponed.
///
/// Each renewal postpones the end, but only when *both* processes know of the renewal. So each
/// process can end the command in time if the other one does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Countdown {
    margins: Margins,
    deadline: BootTime,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Running,
    /// The command has to end, and this signal is the next one.
    Ending {
        next: Due,
        kill_at: BootTime,
    },
    Killed,
}

impl Margins {
    /// The margins for this ttl. A busy host has a tenth of the ttl, at most 1 s, to deliver a
    /// SIGKILL.
    pub(crate) fn new(ttl: Duration, grace: Duration) -> Self {
        let kill = std::cmp::min(Duration::from_secs(1), ttl / 10);
        Self { grace, kill }
    }

    /// From SIGTERM to the end of the lease.
    pub(crate) fn whole(self) -> Duration {
        self.grace + self.kill
    }

    /// The margins of the guardian. It acts after the supervisor, because a supervisor that answers
    /// knows more.
    pub(crate) fn of_guardian(self) -> Self {
        Self {
            kill: self.kill / 2,
            ..self
        }
    }
}

impl Countdown {
    /// A countdown to the deadline of a lease.
    pub(crate) const fn new(margins: Margins, deadline: BootTime) -> Self {
        Self {
            margins,
            deadline,
            stage: Stage::Running,
        }
    }

    /// Notes that both processes know the new deadline of the lease. If the end of the command has
    /// begun, it goes on.
    pub(crate) fn confirm(&mut self, deadline: BootTime) {
        if self.stage == Stage::Running {
            self.deadline = std::cmp::max(self.deadline, deadline);
        }
    }

    /// Begins the end now: SIGTERM at once, and SIGKILL after the grace, but before the lease ends.
    pub(crate) fn end(&mut self, now: BootTime) {
        self.end_within(now, self.margins.grace);
    }

    /// Begins the end after the lease was lost, with a short grace, because another holder may have
    /// the lease.
    pub(crate) fn end_of_lost(&mut self, now: BootTime) {
        self.end_within(now, self.margins.kill);
    }

    fn end_within(&mut self, now: BootTime, grace: Duration) {
        let kill_at = std::cmp::min(now + grace, self.deadline.before(self.margins.kill));
        self.stage = match self.stage {
            Stage::Running => Stage::Ending {
                next: Due::Terminate,
                kill_at,
            },
            Stage::Ending {
                next,
                kill_at: known,
            } => Stage::Ending {
                next,
                kill_at: std::cmp::min(known, kill_at),
            },
            Stage::Killed => Stage::Killed,
        };
    }

    /// The signal that is due now. Each signal is due once.
    pub(crate) fn due(&mut self, now: BootTime) -> Option<Due> {
        if self.next() > now {
            return None;
        }
        if self.stage == Stage::Running {
            self.end(now);
        }
        let Stage::Ending { next, kill_at } = self.stage else {
            return None;
        };
        let due = if kill_at <= now { Due::Kill } else { next };
        self.stage = match due {
            Due::Terminate => Stage::Ending {
                next: Due::Kill,
                kill_at,
            },
            Due::Kill => Stage::Killed,
        };
        Some(due)
    }

    /// The moment of the next signal. After SIGKILL there is none.
    pub(crate) fn next(&self) -> BootTime {
        let margins = self.margins;
        match self.stage {
            Stage::Running => self.deadline.before(margins.kill + margins.grace),
            Stage::Ending {
                next: Due::Terminate,
                ..
            } => BootTime::after_start(Duration::ZERO),
            Stage::Ending {
                next: Due::Kill,
                kill_at,
            } => kill_at,
            Stage::Killed => BootTime::after_start(Duration::MAX),
        }
    }

    /// Whether the end of the command has begun.
    pub(crate) fn is_ending(&self) -> bool {
        self.stage != Stage::Running
    }

    /// Whether SIGKILL was sent.
    pub(crate) fn is_killed(&self) -> bool {
        self.stage == Stage::Killed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: u64) -> BootTime {
        BootTime::after_start(Duration::from_secs(seconds))
    }

    /// A countdown for a ttl of 30 s and a grace of 5 s: SIGKILL is due a second before the end.
    fn until(deadline: u64) -> Countdown {
        let margins = Margins::new(Duration::from_secs(30), Duration::from_secs(5));
        Countdown::new(margins, second(deadline))
    }

    /// Catches: a signal that comes late, early, or twice.
    #[test]
    fn the_signals_come_before_the_lease_ends() {
        let mut countdown = until(30);
        assert_eq!(countdown.next(), second(24));
        assert_eq!(countdown.due(second(23)), None);
        assert_eq!(countdown.due(second(24)), Some(Due::Terminate));
        assert_eq!(countdown.next(), second(29));
        assert_eq!(countdown.due(second(28)), None);
        assert_eq!(countdown.due(second(29)), Some(Due::Kill));
        assert_eq!(countdown.due(second(30)), None);
    }

    /// Catches: a renewal that lets a command live on although its end has begun.
    #[test]
    fn a_renewal_puts_the_end_off_until_it_has_begun() {
        let mut countdown = until(30);
        countdown.confirm(second(40));
        assert_eq!(countdown.due(second(33)), None);
        countdown.confirm(second(20));
        assert_eq!(countdown.due(second(34)), Some(Due::Terminate));
        countdown.confirm(second(99));
        assert_eq!(countdown.due(second(39)), Some(Due::Kill));
    }

    /// Catches: a process that was stopped, and then gives the command more grace than the lease
    /// has left.
    #[test]
    fn a_late_look_leaves_no_grace() {
        assert_eq!(until(30).due(second(29)), Some(Due::Kill));
        let mut countdown = until(30);
        countdown.end(second(27));
        assert_eq!(countdown.due(second(27)), Some(Due::Terminate));
        assert_eq!(countdown.due(second(29)), Some(Due::Kill));
    }

    /// Catches: a command that goes on for the whole grace although another may hold the lease.
    #[test]
    fn after_a_loss_the_grace_is_short() {
        let mut countdown = until(30);
        countdown.end_of_lost(second(5));
        assert_eq!(countdown.due(second(5)), Some(Due::Terminate));
        assert_eq!(countdown.due(second(6)), Some(Due::Kill));
    }
}
