//! The server's state for one resource, and its scripts.

use super::{
    Cohort, Flaw, Process, TenureId, Token,
    state::{Fault, State},
};
use crate::set::Set;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) counter: Token,
    pub(crate) lease: Option<Lease>,
    /// Tombstones: tenures that have ended.
    ended: Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub(crate) tenure: TenureId,
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
        tenure: TenureId,
        wish: u8,
        in_line: Set,
    },
    Renew {
        process: Process,
        tenure: TenureId,
        in_line: Set,
    },
    Release {
        process: Process,
        tenure: TenureId,
    },
    /// An operator has looked, has seen this tenure, and wants it ended.
    Force {
        tenure: TenureId,
    },
    /// A holder's own release arrives late and by another way, after the lock was passed on. It
    /// names the nonce of the holder.
    Stray {
        nonce: Option<TenureId>,
    },
}

/// The server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Answer {
    Granted {
        process: Process,
        tenure: TenureId,
        first: Token,
        reserved: u8,
        in_line: Set,
    },
    Renewed {
        process: Process,
        tenure: TenureId,
        in_line: Set,
    },
    NotHolder {
        process: Process,
        tenure: TenureId,
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

    pub(crate) const fn tenure(self) -> TenureId {
        match self {
            Self::Granted { tenure, .. }
            | Self::Renewed { tenure, .. }
            | Self::NotHolder { tenure, .. } => tenure,
        }
    }
}

impl Server {
    /// The lease ends: released, by force, or because its time is up.
    pub(crate) fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.ended.insert(lease.tenure);
        }
    }

    fn acquire(&mut self, process: Process, tenure: TenureId, wish: u8) -> Option<Lease> {
        if self.ended.contains(tenure) {
            return None;
        }
        if self.lease.is_none() {
            self.lease = Some(Lease {
                tenure,
                process,
                first: self.counter + 1,
                reserved: wish,
            });
            self.counter += wish;
        }
        self.lease.filter(|lease| lease.tenure == tenure)
    }
}

impl Cohort {
    /// Runs the script for a request.
    pub(crate) fn execute(&self, state: &mut State, request: Request) {
        let before = state.server.lease;
        let its = |tenure| before.is_some_and(|lease| lease.tenure == tenure);
        let the = |process| before.is_some_and(|lease| lease.process == process);
        let own = match request {
            Request::Acquire {
                process,
                tenure,
                wish,
                in_line,
            } => {
                if let Some(lease) = state.server.acquire(process, tenure, wish) {
                    let told = if self.is(Flaw::ReplayTellsWish) {
                        wish
                    } else {
                        lease.reserved
                    };
                    state.answer(Answer::Granted {
                        process,
                        tenure,
                        first: lease.first,
                        reserved: told,
                        in_line,
                    });
                }
                return;
            }
            Request::Renew {
                process,
                tenure,
                in_line,
            } => {
                let loose = self.is(Flaw::RenewComparesProcess) && the(process);
                let renewed = its(tenure) || loose;
                state.answer(if renewed {
                    Answer::Renewed {
                        process,
                        tenure,
                        in_line,
                    }
                } else {
                    Answer::NotHolder { process, tenure }
                });
                its(tenure) || !renewed
            }
            Request::Release { process, tenure } => {
                let loose = self.is(Flaw::ReleaseComparesProcess) && the(process);
                if its(tenure) || loose {
                    state.server.end();
                }
                state.server.ended.insert(tenure);
                its(tenure) || !loose
            }
            Request::Force { tenure } => {
                let loose = self.is(Flaw::ForceIsNotCompared) && before.is_some();
                if its(tenure) || loose {
                    state.server.end();
                }
                its(tenure) || !loose
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
