use super::{
    Cohort, LeaseId, PROCESSES, Process, TASKS, Task, Token,
    server::{Answer, Request, Server},
};
use crate::set::Set;

/// The whole state at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) processes: [Side; PROCESSES],
    pub(crate) tasks: [Phase; TASKS],
    /// Requests under way, in any order.
    pub(crate) requests: Vec<Request>,
    /// Answers under way, in any order, or never.
    pub(crate) answers: Vec<Answer>,
    /// SharedLeases whose lease has run out: their process knows it from its own clock.
    pub(crate) overdue: Set,
    pub(crate) leases: LeaseId,
    pub(crate) expiries_left: u8,
    pub(crate) forced_left: u8,
    pub(crate) duplicates_left: u8,
    pub(crate) leaves_left: u8,
    pub(crate) watch: Watch,
}

/// The knowledge of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Side {
    /// Local waiters in the order in which they came.
    pub(crate) line: Vec<Task>,
    /// The shared lease that it asks for.
    pub(crate) asking: Option<LeaseId>,
    pub(crate) shared: Option<SharedLease>,
}

/// A lease that a process believes to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SharedLease {
    pub(crate) id: LeaseId,
    pub(crate) holder: Option<Task>,
    /// The token of the next holder.
    pub(crate) next: Token,
    /// The first token that is not reserved any more.
    pub(crate) end: Token,
    /// The waiters that were in line before the last answered request of this lease was sent.
    pub(crate) eligible: Set,
}

/// How far a task has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    Waiting,
    Holding,
    /// Was passed the lock in this shared lease, and has finished.
    Served(LeaseId),
    /// Left the line.
    Gone,
}

/// What an observer who sees everything remembers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    pub(crate) returned: [Option<Token>; TASKS],
    /// For each waiting task, the greatest token that was returned before it began.
    pub(crate) floors: [Token; TASKS],
    /// The faults of past steps, as numbers of [`Fault`].
    faults: Set,
}

/// A step that must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    OutOfOrder,
    Duplicate,
    StrangerTouched,
    PassedTooLate,
}

impl State {
    pub(crate) fn new(cohort: &Cohort) -> Self {
        Self {
            server: Server::default(),
            processes: Default::default(),
            tasks: [Phase::Idle; TASKS],
            requests: Vec::new(),
            answers: Vec::new(),
            overdue: Set::EMPTY,
            leases: 0,
            expiries_left: cohort.expiries,
            forced_left: cohort.forced,
            duplicates_left: cohort.duplicates,
            leaves_left: cohort.leaves,
            watch: Watch {
                returned: [None; TASKS],
                floors: [0; TASKS],
                faults: Set::EMPTY,
            },
        }
    }

    /// The local waiters of a process, as a set.
    pub(crate) fn in_line(&self, process: Process) -> Set {
        self.processes[process].line.iter().copied().collect()
    }

    /// Keeps states equal that only differ in the order of unordered things.
    pub(crate) fn send(&mut self, request: Request) {
        if let Err(position) = self.requests.binary_search(&request) {
            self.requests.insert(position, request);
        }
    }

    pub(crate) fn answer(&mut self, answer: Answer) {
        if let Err(position) = self.answers.binary_search(&answer) {
            self.answers.insert(position, answer);
        }
    }

    /// Whether an acquire of this process, or a renewal, is under way.
    pub(crate) fn is_under_way(&self, process: Process, acquire: bool) -> bool {
        self.requests.iter().any(|request| match request {
            Request::Acquire { process: by, .. } => acquire && *by == process,
            Request::Renew { process: by, .. } => !acquire && *by == process,
            _ => false,
        })
    }

    /// Forgets answers that would change nothing any more.
    pub(crate) fn forget_deaf(&mut self) {
        let processes = &self.processes;
        self.answers.retain(|answer| {
            let side = &processes[answer.process()];
            let asked = side.asking == Some(answer.shared());
            let present = side.shared.filter(|shared| shared.id == answer.shared());
            let news = |shared: SharedLease| match answer {
                Answer::Granted { in_line, .. } | Answer::Renewed { in_line, .. } => {
                    !shared.eligible.contains_all(*in_line)
                }
                Answer::NotHolder { .. } => true,
            };
            asked || present.is_some_and(news)
        });
    }

    /// A task enters the line.
    pub(crate) fn watch_begin(&mut self, task: Task) {
        let returned = self.watch.returned.iter().flatten();
        self.watch.floors[task] = returned.max().copied().unwrap_or(0);
    }

    /// A task is about to get a token, in this shared lease.
    pub(crate) fn watch_return(&mut self, task: Task, token: Token, shared: LeaseId) {
        let floor = std::mem::take(&mut self.watch.floors[task]);
        let twice = self.watch.returned.contains(&Some(token));
        let late = self.overdue.contains(shared);
        self.watch.blame(Fault::OutOfOrder, token <= floor);
        self.watch.blame(Fault::Duplicate, twice);
        self.watch.blame(Fault::PassedTooLate, late);
        self.watch.returned[task] = Some(token);
    }
}

impl Watch {
    pub(crate) fn blame(&mut self, fault: Fault, wrong: bool) {
        if wrong {
            self.faults.insert(fault as usize);
        }
    }

    pub(crate) fn has_seen(&self, fault: Fault) -> bool {
        self.faults.contains(fault as usize)
    }
}
