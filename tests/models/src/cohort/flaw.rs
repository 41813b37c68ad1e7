/// One rule of the cohort is left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The lock is passed to the first in the line, whoever that is.
    PassesToAnybody,
    /// Waiters in line when the answer to an acquire or renewal arrived may be passed the lock.
    CountsFromAnswer,
    /// Waiters in line when a renewal was sent may be passed the lock before it is answered.
    CountsUnanswered,
    /// The lock is passed on without a look at the clock.
    PassesAfterDeadline,
    /// The lock is still passed on when the reserved tokens are used up.
    PassesBeyondReserve,
    /// An acquire that finds its own shared lease is told as many tokens as it asks for now.
    ReplayTellsWish,
    /// A local holder has the same nonce as the shared lease.
    NonceIsShared,
    /// A release only compares the process.
    ReleaseComparesProcess,
    /// A renewal only compares the process.
    RenewComparesProcess,
    /// A forced release ends whatever lease it finds.
    ForceIsNotCompared,
}
