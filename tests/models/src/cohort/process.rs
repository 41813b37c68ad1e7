//! The behaviour of a process: it asks for its tasks, and passes the lock on between them.

use super::{
    Cohort, Flaw, Process, Task, process_of,
    server::{Answer, Request},
    state::{Phase, SharedLease, State},
};
use crate::set::Set;

impl Cohort {
    pub(crate) fn begin(&self, state: &mut State, task: Task) {
        let process = process_of(task);
        state.watch_begin(task);
        state.tasks[task] = Phase::Waiting;
        state.processes[process].line.push(task);
        self.ask_if_needed(state, process);
    }

    pub(crate) fn leave(&self, state: &mut State, task: Task) {
        let process = process_of(task);
        state.leaves_left -= 1;
        state.tasks[task] = Phase::Gone;
        let side = &mut state.processes[process];
        side.line.retain(|other| *other != task);
        // It may have been granted already, or a request under way may still be granted.
        if side.line.is_empty()
            && let Some(shared) = side.asking.take()
        {
            state.send(Request::Release { process, shared });
        }
    }

    pub(crate) fn finish(&self, state: &mut State, task: Task) {
        let process = process_of(task);
        if let Some(shared) = &mut state.processes[process].shared {
            shared.holder = None;
            state.tasks[task] = Phase::Served(shared.id);
            self.hand_on(state, process);
        }
    }

    /// A process that has waiters and no shared lease asks for one, under a nonce of its own.
    fn ask_if_needed(&self, state: &mut State, process: Process) {
        let side = &mut state.processes[process];
        if side.asking.is_none() && side.shared.is_none() && !side.line.is_empty() {
            side.asking = Some(state.leases);
            state.leases += 1;
        }
    }

    pub(crate) fn ask(&self, state: &mut State, process: Process) {
        let in_line = state.in_line(process);
        if let Some(shared) = state.processes[process].asking {
            let wish = self.reserve.min(in_line.len());
            state.send(Request::Acquire {
                process,
                shared,
                wish,
                in_line,
            });
        }
    }

    pub(crate) fn renew(&self, state: &mut State, process: Process) {
        let in_line = state.in_line(process);
        if let Some(shared) = &mut state.processes[process].shared {
            if self.is(Flaw::CountsUnanswered) {
                shared.eligible.include(in_line);
            }
            let shared = shared.id;
            state.send(Request::Renew {
                process,
                shared,
                in_line,
            });
        }
    }

    pub(crate) fn receive(&self, state: &mut State, answer: Answer) {
        match answer {
            Answer::Granted {
                process,
                shared,
                first,
                reserved,
                in_line,
            } => {
                let side = &mut state.processes[process];
                let asked = side.asking == Some(shared);
                if asked {
                    side.asking = None;
                    side.shared = Some(SharedLease {
                        id: shared,
                        holder: None,
                        next: first,
                        end: first + reserved,
                        eligible: Set::EMPTY,
                    });
                }
                self.answered(state, process, shared, in_line);
                if asked {
                    self.hand_on(state, process);
                }
            }
            Answer::Renewed {
                process,
                shared,
                in_line,
            } => {
                self.answered(state, process, shared, in_line);
            }
            Answer::NotHolder { process, shared } => {
                let side = &mut state.processes[process];
                if side.shared.is_some_and(|present| present.id == shared) {
                    self.lose(state, process);
                }
            }
        }
    }

    /// The lease lived when the server ran the request. Waiters that were in line before it was
    /// sent began before anybody else can have got a greater token.
    fn answered(&self, state: &mut State, process: Process, id: usize, in_line: Set) {
        let now = state.in_line(process);
        let present = state.processes[process].shared.as_mut();
        if let Some(shared) = present.filter(|shared| shared.id == id) {
            shared.eligible.include(in_line);
            if self.is(Flaw::CountsFromAnswer) {
                shared.eligible.include(now);
            }
        }
    }

    /// Passes the lock to the next eligible waiter in the line, or gives the lease back.
    fn hand_on(&self, state: &mut State, process: Process) {
        let Some(shared) = state.processes[process].shared else {
            return;
        };
        if state.overdue.contains(shared.id) && !self.is(Flaw::PassesAfterDeadline) {
            return self.lose(state, process);
        }
        let may = |task: &Task| shared.eligible.contains(*task) || self.is(Flaw::PassesToAnybody);
        let next = state.processes[process].line.iter().copied().find(may);
        let used_up = shared.next == shared.end && !self.is(Flaw::PassesBeyondReserve);
        match next.filter(|_| !used_up) {
            Some(task) => self.pass(state, shared, task),
            None => {
                state.processes[process].shared = None;
                state.send(Request::Release {
                    process,
                    shared: shared.id,
                });
                self.ask_if_needed(state, process);
            }
        }
    }

    fn pass(&self, state: &mut State, mut shared: SharedLease, task: Task) {
        let side = &mut state.processes[process_of(task)];
        side.line.retain(|other| *other != task);
        let token = shared.next;
        shared.next += 1;
        shared.holder = Some(task);
        side.shared = Some(shared);
        state.watch_return(task, token, shared.id);
        state.tasks[task] = Phase::Holding;
    }

    /// The lease is gone, and with it the remaining tokens. The local holder is told.
    fn lose(&self, state: &mut State, process: Process) {
        let lost = state.processes[process].shared.take();
        if let Some(SharedLease {
            id,
            holder: Some(task),
            ..
        }) = lost
        {
            state.tasks[task] = Phase::Served(id);
        }
        self.ask_if_needed(state, process);
    }
}
