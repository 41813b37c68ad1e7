//! The plan of one schedule: the works of its clients, and the faults. A seed draws it
//! (`drawing.rs`), and proptest makes it smaller.

mod drawing;

use std::{fmt, time::Duration};

pub use self::drawing::{drawn, drawn_plan, plans};
use crate::{service::Variant, world::Order};

/// One schedule. The same plan always runs in the same way.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "strategies build it, schedules take it apart"
)]
pub struct Plan {
    /// The key of all draws of the run: the fates of messages, the order of tasks, holders.
    pub seed: u64,
    /// How the next task is chosen.
    pub order: Order,
    /// How the lock service hands a lease on.
    pub variant: Variant,
    /// The length of leases.
    pub ttl: Duration,
    /// Whether leases are so long that none ends by itself: then nothing hides a leak.
    pub is_long: bool,
    /// The way to the lock service.
    pub to_service: Net,
    /// The way to the store.
    pub to_store: Net,
    /// How long a claim waits for an older transaction.
    pub lock_timeout: Duration,
    /// The clients. Each is a process.
    pub clients: Vec<Client>,
    /// The faults of the lock service, and their times.
    pub faults: Vec<(Duration, Fault)>,
    /// When all faults end.
    pub calm: Duration,
}

/// The fate of messages on one way, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "as a plan")]
pub struct Net {
    /// The longest usual delay.
    pub delay: Duration,
    /// How many are lost.
    pub lost: u16,
    /// How many arrive a second time.
    pub copied: u16,
    /// How many take longer than a lease.
    pub late: u16,
    /// How much longer a late message takes at most.
    pub late_by: Duration,
}

/// One client.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "as a plan")]
pub struct Client {
    /// Its works, in this order.
    pub works: Vec<Work>,
    /// Before which of its polls the client is stopped, and for how long.
    pub pauses: Vec<(u16, Duration)>,
    /// When its process ends, and how. Another process does the works that it has not begun.
    pub killed: Option<(Duration, Death)>,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "as a plan")]
pub enum Death {
    /// The process is killed.
    Killed,
    /// The process shuts its manager down in the middle of its work, and is killed after that.
    ShutDown,
}

/// One piece of work of a client.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "as a plan")]
pub struct Work {
    /// How long after the work before it begins.
    pub after: Duration,
    /// The kind of work.
    pub task: Task,
    /// The number of the resource, of the job, or of the leader.
    pub on: u8,
    /// How long it takes, between reading and writing.
    pub takes: Duration,
    /// How long it waits for the lease. `None` has no bound.
    pub wait: Option<Duration>,
    /// At which of its awaits it is dropped, and whether it is woken there first.
    pub dropped: Option<(u8, bool)>,
    /// At which of its places its process is stopped, and for how long.
    pub stopped: Option<(u8, Duration)>,
    /// A number that the task uses as it likes.
    pub choice: u8,
}

/// How many places there are at which a piece of work may be stopped.
pub const PLACES: u8 = 5;

/// The kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "as a plan")]
pub enum Task {
    /// Locks, reads, writes under the fence, releases.
    Section,
    /// As `Section`, if the lease is free.
    Try,
    /// A lease of the lock service alone, whose guard is dropped or released.
    Lease,
    /// An acquisition with a holder that the caller gives. It is repeated.
    Given,
    /// Two holds of one owner.
    Owner,
    /// Two resources under one transaction.
    Both,
    /// Two resources at once.
    Together,
    /// A job that runs once for a slot.
    Once,
    /// A job in steps.
    Steps,
    /// A leader, for a while.
    Lead,
    /// A request to a service behind an edge.
    Edge,
    /// An operator ends the lease by force.
    Force,
    /// A look, and a list.
    Inspect,
}

/// A fault of the lock service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "as a plan")]
pub enum Fault {
    /// The service answers nothing for so long.
    Silent(Duration),
    /// The service refuses connections for so long.
    Down(Duration),
    /// The service forgets its waiters.
    QueueLost,
    /// The service comes back empty.
    EverythingLost,
    /// A copy of that age goes on.
    FailOver(Duration),
    /// Its clock jumps forward.
    ClockForward(Duration),
    /// Its clock jumps back.
    ClockBack(Duration),
    /// The wall clock of the store jumps by so many milliseconds. Only the pauses of jobs go by it.
    StoreClock(i32),
}

impl Plan {
    /// The plan with fewer clients that do less, for a store that takes real time.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        self.clients.truncate(3);
        for client in &mut self.clients {
            client.works.truncate(4);
        }
        self
    }

    /// Whether the lock service forgets ended acquisitions: then a late request may get a lease.
    #[must_use]
    pub fn loses_state(&self) -> bool {
        let mut faults = self.faults.iter();
        faults.any(|(_, fault)| matches!(fault, Fault::FailOver(_) | Fault::EverythingLost))
    }

    /// Whether no process is ever stopped.
    #[must_use]
    pub fn stops_nobody(&self) -> bool {
        let mut clients = self.clients.iter();
        clients.all(|client| {
            client.pauses.is_empty() && client.works.iter().all(|work| work.stopped.is_none())
        })
    }

    /// Whether no process is ever stopped, and none ends.
    #[must_use]
    pub fn is_undisturbed(&self) -> bool {
        let lives = |client: &Client| client.killed.is_none();
        self.stops_nobody() && self.clients.iter().all(lives)
    }

    /// Whether each request to the lock service is answered, and soon.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        let Net { lost, late, .. } = self.to_service;
        lost == 0 && late == 0 && self.faults.is_empty()
    }

    /// Whether the lock service keeps its state and its clock: otherwise less is promised.
    #[must_use]
    pub fn service_is_sound(&self) -> bool {
        self.faults.iter().all(|(_, fault)| fault.is_sound())
    }
}

impl Work {
    /// Whether the work has one lease, which the watchdog renews without an end.
    #[must_use]
    pub const fn renews(&self) -> bool {
        let has_end = matches!(self.task, Task::Lease) && self.choice & 8 == 8;
        let has_one = matches!(
            self.task,
            Task::Section | Task::Try | Task::Lease | Task::Edge
        );
        has_one && self.choice & 1 == 0 && !has_end
    }
}

impl Fault {
    /// Whether the lock service keeps its leases and its clock.
    #[must_use]
    pub const fn is_sound(self) -> bool {
        matches!(
            self,
            Self::Silent(_) | Self::Down(_) | Self::QueueLost | Self::StoreClock(_)
        )
    }
}

/// One line for each client and each fault.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:?}, tasks in the order {:?}, leases of {:?}, claims wait {:?}",
            self.variant, self.order, self.ttl, self.lock_timeout
        )?;
        writeln!(f, "to the lock service: {}", self.to_service)?;
        writeln!(f, "to the store: {}", self.to_store)?;
        for (number, client) in self.clients.iter().enumerate() {
            writeln!(f, "client {number}{client}")?;
        }
        for (at, fault) in &self.faults {
            writeln!(f, "at {at:?}: {fault:?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            delay,
            lost,
            copied,
            late,
            late_by,
        } = self;
        write!(
            f,
            "{delay:?} at most; of 1000 messages {lost} are lost, {copied} are copied, {late} are \
             up to {late_by:?} late"
        )
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (poll, pause) in &self.pauses {
            write!(f, ", stopped for {pause:?} at its poll {poll}")?;
        }
        if let Some((at, death)) = self.killed {
            write!(f, ", {death:?} at {at:?}")?;
        }
        for work in &self.works {
            write!(f, "\n    {work}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            after,
            task,
            on,
            takes,
            choice,
            ..
        } = self;
        write!(
            f,
            "after {after:?}: {task:?} on {on}, takes {takes:?}, choice {choice}"
        )?;
        if let Some(wait) = self.wait {
            write!(f, ", waits {wait:?}")?;
        }
        if let Some((at, is_woken)) = self.dropped {
            let when = if is_woken { ", woken" } else { "" };
            write!(f, ", dropped at await {at}{when}")?;
        }
        if let Some((place, pause)) = self.stopped {
            write!(f, ", stopped at place {place} for {pause:?}")?;
        }
        Ok(())
    }
}
