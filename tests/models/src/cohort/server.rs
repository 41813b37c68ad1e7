//! The server's state for one resource, and its scripts.

use super::{
    Cohort, Flaw, LeaseId, Process, Token,
    state::{Fault, State},
};
use crate::set::Set;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) counter: Token,
    pub(crate) lease: Option<Lease>,
    /// Tombstones: leases that have ended.
    ended: Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub(crate) shared: LeaseId,
    process: Process,
    first: Token,
    reserved: u8,
}

/// A request of a process. Acquire and renew record who was in line when they were sent: only the
/// answer to that request brings it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Request {
    Acquire {
        process: Process,
        shared: LeaseId,
        wish: u8,
        in_line: Set,
    },
    Renew {
        process: Process,
        shared: LeaseId,
        in_line: Set,
    },
    Release {
        process: Process,
        shared: LeaseId,
    },
    /// An operator has looked, has seen this shared lease, and wants it ended.
    Force {
        shared: LeaseId,
    },
    /// A holder's own release arrives late and by another way, after the lock was passed on. It
    /// names the nonce of the holder.
    Stray {
        nonce: Option<LeaseId>,
    },
}

/// The server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Answer {
    Granted {
        process: Process,
        shared: LeaseId,
        first: Token,
        reserved: u8,
        in_line: Set,
    },
    Renewed {
        process: Process,
        shared: LeaseId,
        in_line: Set,
    },
    NotHolder {
        process: Process,
        shared: LeaseId,
    },
}

impl Answer {
    pub(crate) const fn process(self) -> Process {
        match self {
            Self::Granted { process, .. }
            | Self::Renewed { process, .. }
            | Self::NotHolder { process, .. } => process,
        }
    }

    pub(crate) const fn shared(self) -> LeaseId {
        match self {
            Self::Granted { shared, .. }
            | Self::Renewed { shared, .. }
            | Self::NotHolder { shared, .. } => shared,
        }
    }
}

impl Server {
    /// The lease ends: released, by force, or because its time is up.
    pub(crate) fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.ended.insert(lease.shared);
        }
    }

    fn acquire(&mut self, process: Process, shared: LeaseId, wish: u8) -> Option<Lease> {
        if self.ended.contains(shared) {
            return None;
        }
        if self.lease.is_none() {
            self.lease = Some(Lease {
                shared,
                process,
                first: self.counter + 1,
                reserved: wish,
            });
            self.counter += wish;
        }
        self.lease.filter(|lease| lease.shared == shared)
    }
}

impl Cohort {
    /// Runs the script for a request.
    pub(crate) fn execute(&self, state: &mut State, request: Request) {
        let before = state.server.lease;
        let its = |shared| before.is_some_and(|lease| lease.shared == shared);
        let the = |process| before.is_some_and(|lease| lease.process == process);
        let own = match request {
            Request::Acquire {
                process,
                shared,
                wish,
                in_line,
            } => {
                if let Some(lease) = state.server.acquire(process, shared, wish) {
                    let told = if self.is(Flaw::ReplayTellsWish) {
                        wish
                    } else {
                        lease.reserved
                    };
                    state.answer(Answer::Granted {
                        process,
                        shared,
                        first: lease.first,
                        reserved: told,
                        in_line,
                    });
                }
                return;
            }
            Request::Renew {
                process,
                shared,
                in_line,
            } => {
                let loose = self.is(Flaw::RenewComparesProcess) && the(process);
                let renewed = its(shared) || loose;
                state.answer(if renewed {
                    Answer::Renewed {
                        process,
                        shared,
                        in_line,
                    }
                } else {
                    Answer::NotHolder { process, shared }
                });
                its(shared) || !renewed
            }
            Request::Release { process, shared } => {
                let loose = self.is(Flaw::ReleaseComparesProcess) && the(process);
                if its(shared) || loose {
                    state.server.end();
                }
                state.server.ended.insert(shared);
                its(shared) || !loose
            }
            Request::Force { shared } => {
                let loose = self.is(Flaw::ForceIsNotCompared) && before.is_some();
                if its(shared) || loose {
                    state.server.end();
                }
                its(shared) || !loose
            }
            Request::Stray { nonce } => {
                let ends = nonce.is_some_and(its);
                if ends {
                    state.server.end();
                }
                !ends
            }
        };
        state.watch.blame(Fault::StrangerTouched, !own);
    }
}
