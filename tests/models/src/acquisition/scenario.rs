use super::{
    Caller, Machines, May,
    Patience::{self, Bounded, Forever, Never},
    Waking,
};

/// An attempt of an acquisition and a process of its own.
const fn alone(number: usize, patience: Patience) -> Caller {
    Caller {
        patience,
        acquisition: number,
        process: number,
    }
}

/// An attempt of the first acquisition, which another process may repeat.
const fn shared(process: usize, patience: Patience) -> Caller {
    Caller {
        patience,
        acquisition: 0,
        process,
    }
}

const ONE_AND_ONE: &[Caller] = &[alone(0, Never), alone(1, Forever)];
const ONE_PROCESS: &[Caller] = &[
    alone(0, Never),
    Caller {
        process: 0,
        ..alone(1, Forever)
    },
];
const BOUNDED: &[Caller] = &[alone(0, Bounded), alone(1, Forever)];
const THREE: &[Caller] = &[alone(0, Never), alone(1, Forever), alone(2, Forever)];
const SIBLINGS: &[Caller] = &[shared(0, Never), shared(1, Forever)];
const RIVAL: &[Caller] = &[shared(0, Forever), shared(1, Forever), alone(2, Never)];
/// The first process has two attempts in the queue.
const PAUSED: &[Caller] = &[
    alone(0, Forever),
    Caller {
        process: 0,
        ..alone(1, Forever)
    },
    alone(2, Never),
    alone(3, Never),
];

impl Machines {
    const fn of(callers: &'static [Caller], waking: Waking, faults: u8) -> Self {
        Self {
            callers,
            waking,
            faults,
            may: &[],
            flaw: None,
        }
    }

    /// One looks, the other waits without bound.
    pub(crate) const fn look_and_wait(waking: Waking, faults: u8) -> Self {
        Self::of(ONE_AND_ONE, waking, faults)
    }

    /// One waits for two ticks, the other without bound.
    pub(crate) const fn bounded(waking: Waking, faults: u8) -> Self {
        Self::of(BOUNDED, waking, faults)
    }

    /// One looks, two wait without bound.
    pub(crate) const fn three(waking: Waking, faults: u8) -> Self {
        Self::of(THREE, waking, faults)
    }

    /// Two attempts of one acquisition, in two processes.
    pub(crate) const fn siblings(waking: Waking, faults: u8) -> Self {
        Self::of(SIBLINGS, waking, faults)
    }

    /// Two attempts of one acquisition wait, in two processes, while another acquisition has the
    /// lease.
    pub(crate) const fn rival(waking: Waking, faults: u8) -> Self {
        Self::of(RIVAL, waking, faults)
    }

    /// Two attempts of one process wait, which may be paused at any time, and two others look.
    pub(crate) const fn paused() -> Self {
        Self::of(PAUSED, Waking::Offers, 0)
    }

    /// As [`paused`](Self::paused), but one attempt looks, and a channel may break.
    pub(crate) const fn cut() -> Self {
        Self::of(PAUSED.split_at(3).0, Waking::Offers, 0).that(&[May::Cut])
    }

    /// Redis: one attempt looks, the other waits without bound, and both are of one process.
    pub(crate) const fn one_process(faults: u8) -> Self {
        Self::of(ONE_PROCESS, Waking::Offers, faults)
    }

    /// The same model, in which this may happen, too.
    pub(crate) const fn that(self, may: &'static [May]) -> Self {
        Self { may, ..self }
    }

    pub(super) fn may(&self, this: May) -> bool {
        self.may.contains(&this)
    }

    pub(super) fn acquisition(&self, client: usize) -> usize {
        self.callers[client].acquisition
    }

    pub(super) fn process(&self, client: usize) -> usize {
        self.callers[client].process
    }

    /// Whether other attempts may have the lease of this acquisition.
    pub(super) fn is_shared(&self, acquisition: usize) -> bool {
        let its = |caller: &&Caller| caller.acquisition == acquisition;
        self.callers.iter().filter(its).count() > 1
    }

    /// Whether callers that wait alike may change places.
    pub(super) fn has_alike(&self) -> bool {
        let plain = |(number, caller): (usize, &Caller)| *caller == alone(number, caller.patience);
        let all_plain = self.callers.iter().enumerate().all(plain);
        let twice = |pair: &[Caller]| pair[0].patience == pair[1].patience;
        all_plain && self.callers.windows(2).any(twice) && !self.has_database()
    }

    pub(super) fn has_database(&self) -> bool {
        let faults = [May::Crash, May::Promote, May::Transact];
        faults.into_iter().any(|fault| self.may(fault))
    }
}
