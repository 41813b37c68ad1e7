//! The behaviour of a process: it asks for its tasks, and passes the lock on between them.

use super::{
    Cohort, Flaw, Process, Task, process_of,
    server::{Answer, Request},
    state::{Phase, State, Tenure},
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
        // The tenure may have been granted already, or a request under way may still be granted.
        if side.line.is_empty()
            && let Some(tenure) = side.asking.take()
        {
            state.send(Request::Release { process, tenure });
        }
    }

    pub(crate) fn finish(&self, state: &mut State, task: Task) {
        let process = process_of(task);
        if let Some(tenure) = &mut state.processes[process].tenure {
            tenure.holder = None;
            state.tasks[task] = Phase::Served(tenure.id);
            self.hand_on(state, process);
        }
    }

    /// A process that has waiters and no tenure asks for one, under a nonce of its own.
    fn ask_if_needed(&self, state: &mut State, process: Process) {
        let side = &mut state.processes[process];
        if side.asking.is_none() && side.tenure.is_none() && !side.line.is_empty() {
            side.asking = Some(state.tenures);
            state.tenures += 1;
        }
    }

    pub(crate) fn ask(&self, state: &mut State, process: Process) {
        let in_line = state.in_line(process);
        if let Some(tenure) = state.processes[process].asking {
            let wish = self.reserve.min(in_line.len());
            state.send(Request::Acquire {
                process,
                tenure,
                wish,
                in_line,
            });
        }
    }

    pub(crate) fn renew(&self, state: &mut State, process: Process) {
        let in_line = state.in_line(process);
        if let Some(tenure) = &mut state.processes[process].tenure {
            if self.is(Flaw::CountsUnanswered) {
                tenure.eligible.include(in_line);
            }
            let tenure = tenure.id;
            state.send(Request::Renew {
                process,
                tenure,
                in_line,
            });
        }
    }

    pub(crate) fn receive(&self, state: &mut State, answer: Answer) {
        match answer {
            Answer::Granted {
                process,
                tenure,
                first,
                reserved,
                in_line,
            } => {
                let side = &mut state.processes[process];
                let asked = side.asking == Some(tenure);
                if asked {
                    side.asking = None;
                    side.tenure = Some(Tenure {
                        id: tenure,
                        holder: None,
                        next: first,
                        end: first + reserved,
                        eligible: Set::EMPTY,
                    });
                }
                self.answered(state, process, tenure, in_line);
                if asked {
                    self.hand_on(state, process);
                }
            }
            Answer::Renewed {
                process,
                tenure,
                in_line,
            } => {
                self.answered(state, process, tenure, in_line);
            }
            Answer::NotHolder { process, tenure } => {
                let side = &mut state.processes[process];
                if side.tenure.is_some_and(|present| present.id == tenure) {
                    self.lose(state, process);
                }
            }
        }
    }

    /// The tenure lived when the server ran the request. Waiters that were in line before it was
    /// sent began before anybody else can have got a greater token.
    fn answered(&self, state: &mut State, process: Process, id: usize, in_line: Set) {
        let now = state.in_line(process);
        let present = state.processes[process].tenure.as_mut();
        if let Some(tenure) = present.filter(|tenure| tenure.id == id) {
            tenure.eligible.include(in_line);
            if self.is(Flaw::CountsFromAnswer) {
                tenure.eligible.include(now);
            }
        }
    }

    /// Passes the lock to the next eligible waiter in the line, or gives the lease back.
    fn hand_on(&self, state: &mut State, process: Process) {
        let Some(tenure) = state.processes[process].tenure else {
            return;
        };
        if state.overdue.contains(tenure.id) && !self.is(Flaw::PassesAfterDeadline) {
            return self.lose(state, process);
        }
        let may = |task: &Task| tenure.eligible.contains(*task) || self.is(Flaw::PassesToAnybody);
        let next = state.processes[process].line.iter().copied().find(may);
        let used_up = tenure.next == tenure.end && !self.is(Flaw::PassesBeyondReserve);
        match next.filter(|_| !used_up) {
            Some(task) => self.pass(state, tenure, task),
            None => {
                state.processes[process].tenure = None;
                state.send(Request::Release {
                    process,
                    tenure: tenure.id,
                });
                self.ask_if_needed(state, process);
            }
        }
    }

    fn pass(&self, state: &mut State, mut tenure: Tenure, task: Task) {
        let side = &mut state.processes[process_of(task)];
        side.line.retain(|other| *other != task);
        let token = tenure.next;
        tenure.next += 1;
        tenure.holder = Some(task);
        side.tenure = Some(tenure);
        state.watch_return(task, token, tenure.id);
        state.tasks[task] = Phase::Holding;
    }

    /// The lease is gone, and with it the remaining tokens. The local holder is told.
    fn lose(&self, state: &mut State, process: Process) {
        let lost = state.processes[process].tenure.take();
        if let Some(Tenure {
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
