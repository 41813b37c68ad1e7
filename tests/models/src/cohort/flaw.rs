/// One rule of the cohort left out. Each of them must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// The lock is passed to whoever is first in the line.
    PassesToAnybody,
    /// Who was in line when the answer to an acquire or renewal came in may be passed to.
    CountsFromAnswer,
    /// Who was in line when a renewal was sent may be passed to before it is answered.
    CountsUnanswered,
    /// The lock is passed on without a look at the clock.
    PassesAfterDeadline,
    /// The lock is passed on when the reserved tokens are used up.
    PassesBeyondReserve,
    /// An acquire that finds its own tenure is told as many tokens as it asks for now.
    ReplayTellsWish,
    /// A local holder's nonce is the tenure's.
    NonceIsShared,
    /// Release compares the process.
    ReleaseComparesProcess,
    /// Renew compares the process.
    RenewComparesProcess,
    /// A release by force ends the lease that it finds.
    ForceIsNotCompared,
}
