//! The actions that are possible, and their effects.

use super::{
    Cohort, Flaw, PROCESSES, Process, TASKS, Task, process_of,
    server::{Answer, Request},
    state::{Phase, SharedLease, State},
};

/// One step of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A task enters the line of its process.
    Begin(Task),
    /// A task leaves the line.
    Leave(Task),
    /// The local holder has finished.
    Finish(Task),
    /// The server receives a release by a holder that has already passed the lock on.
    Stray(Task),
    /// A process asks again for the shared lease that it wants.
    Ask(Process),
    /// A process renews its lease.
    Renew(Process),
    /// An operator looks at the lease and sends a request to end it.
    Force,
    /// The server runs a request.
    Run(Request),
    /// The server runs a request, which will arrive a second time.
    RunFirstOfTwo(Request),
    /// A process receives an answer.
    Receive(Answer),
    /// The lease runs out.
    Expire,
}

impl Cohort {
    /// All actions that are possible in a state.
    pub(crate) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for task in 0..TASKS {
            self.possible_for(state, task, actions);
        }
        for process in 0..PROCESSES {
            let side = &state.processes[process];
            if side.asking.is_some() && !state.is_under_way(process, true) {
                actions.push(Action::Ask(process));
            }
            let young = state.in_line(process);
            let is_young = |shared: SharedLease| !shared.eligible.contains_all(young);
            if side.shared.is_some_and(is_young) && !state.is_under_way(process, false) {
                actions.push(Action::Renew(process));
            }
        }
        for request in &state.requests {
            actions.push(Action::Run(*request));
            if state.duplicates_left > 0 {
                actions.push(Action::RunFirstOfTwo(*request));
            }
        }
        actions.extend(state.answers.iter().copied().map(Action::Receive));
        if state.server.lease.is_some() {
            if state.expiries_left > 0 {
                actions.push(Action::Expire);
            }
            if state.forced_left > 0 {
                actions.push(Action::Force);
            }
        }
    }

    fn possible_for(&self, state: &State, task: Task, actions: &mut Vec<Action>) {
        match state.tasks[task] {
            // The tasks of one process are alike: they begin in the order of their numbers.
            Phase::Idle => {
                let first = task == 0 || process_of(task) != process_of(task - 1);
                if first || state.tasks[task - 1] != Phase::Idle {
                    actions.push(Action::Begin(task));
                }
            }
            Phase::Waiting if state.leaves_left > 0 => actions.push(Action::Leave(task)),
            Phase::Holding => actions.push(Action::Finish(task)),
            Phase::Served(_) if state.duplicates_left > 0 => actions.push(Action::Stray(task)),
            Phase::Waiting | Phase::Served(_) | Phase::Gone => {}
        }
    }

    /// Takes one step.
    pub(crate) fn perform(&self, state: &mut State, action: Action) {
        match action {
            Action::Begin(task) => self.begin(state, task),
            Action::Leave(task) => self.leave(state, task),
            Action::Finish(task) => self.finish(state, task),
            Action::Stray(task) => {
                if let Phase::Served(shared) = state.tasks[task] {
                    let nonce = self.is(Flaw::NonceIsShared).then_some(shared);
                    state.duplicates_left -= 1;
                    state.send(Request::Stray { nonce });
                }
            }
            Action::Ask(process) => self.ask(state, process),
            Action::Renew(process) => self.renew(state, process),
            Action::Force => {
                if let Some(lease) = state.server.lease {
                    state.forced_left -= 1;
                    state.send(Request::Force {
                        shared: lease.shared,
                    });
                }
            }
            Action::Run(request) => {
                state.requests.retain(|other| *other != request);
                self.execute(state, request);
            }
            Action::RunFirstOfTwo(request) => {
                state.duplicates_left -= 1;
                self.execute(state, request);
            }
            Action::Receive(answer) => {
                state.answers.retain(|other| *other != answer);
                self.receive(state, answer);
            }
            Action::Expire => {
                state.expiries_left -= 1;
                if let Some(lease) = state.server.lease {
                    state.overdue.insert(lease.shared);
                }
                state.server.end();
            }
        }
        state.forget_deaf();
    }
}
