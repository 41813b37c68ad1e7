/// One rule left out, by a wrapper around the machine, by a client of a lock service, or by a
/// server. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// `Held` is answered although a copy of the request may arrive later.
    HeldDespiteCopy,
    /// A release leaves no tombstone although a copy of a request may arrive later, or another
    /// attempt has the acquisition.
    NoTombstone,
    /// A caller that goes away while a request is under way cancels nothing.
    LeavesSilently,
    /// An error that says that nothing has changed is believed, whatever was sent before.
    ErrorsBelieved,
    /// A lease is counted from its answer.
    CountedFromAnswer,
    /// An offer is taken for a lease.
    OfferTaken,
    /// A pushed lease is counted from the push.
    PushBelieved,
    /// The release of a lease that was lost is answered `Released`.
    LossReleased,
    /// A waiter bears the silence of the common task without a bound.
    SilenceBorne,
    /// A waiter does not look again by itself.
    NeverLooksAgain,
    /// `Held` is answered although a try was not undone at each node of Redlock.
    UndoIncomplete,
    /// PostgreSQL: the common task looks for no attempt.
    NoneStirred,
    /// PostgreSQL: a look is a sign of life of a waiter whose turn has come and that does not ask.
    IdleStaysFirst,
    /// Redis: an attempt is registered where pushes look for it only after its first answer.
    RegistersLate,
    /// Redis: a push for an attempt that does not wait any more is answered with a cancel, whatever
    /// that attempt holds.
    LatePushCancels,
    /// Redis: a push for an attempt that does not wait any more is answered with a release of the
    /// lease.
    LatePushReleases,
    /// Redis: a push is accepted by any attempt of its acquisition.
    PushMatchesAcquisition,
    /// A cancel leaves no tombstone (clause 9).
    CancelForgotten,
    /// A cancel ends the acquisition of the attempt.
    CancelIgnoresAttempts,
    /// Lease and place remember the attempt that asked last, not all that asked.
    OnlyLatestAttempt,
    /// A release is not compared (clause 7).
    ReleaseNotCompared,
    /// A confirm is not compared.
    ConfirmNotCompared,
    /// A look that does not queue keeps its place (clause 8).
    PlaceKept,
    /// Tokens are not counted (clause 1).
    TokenRepeats,
    /// A look that finds its own offer makes it a lease.
    ReplayExtends,
    /// A look that finds its own lease draws a new token.
    ReplayIncrements,
    /// The end of a lease that ran out is not remembered.
    ExpiryForgotten,
    /// A free lease goes to the caller that asks, instead of the first in the queue.
    OutOfTurn,
    /// Redis: a pushed lease has its full length at once.
    PushIsFull,
    /// Redis: a place leaves the queue with the offer, not with its confirm.
    PlaceLeavesAtOffer,
    /// Redis: a look clears the mark of its process before it settles the offer that ran out.
    LookClearsTooEarly,
    /// Redis: the caller is passed over if its process was set aside in the same script.
    CallerNotExempt,
    /// Redis: the place of a waiter stays in the queue when the answer to a release has its lease.
    HandedKeepsPlace,
    /// Redis: the answer to a release gives its grant to the waiter once more.
    HandedTwice,
    /// Redis: the key of the lease is deleted with the lease, whatever other keys are there.
    NeverVacant,
    /// Redis: the key of the lease does not say that other keys are there.
    AlwaysAlone,
    /// PostgreSQL: the lease is read before the mutex is taken.
    OldSnapshot,
    /// PostgreSQL: a tombstone is deleted although a copy may arrive later.
    TombstoneGoesFirst,
    /// PostgreSQL: a grant is answered before it is flushed.
    GrantNotFlushed,
    /// PostgreSQL: a renewal is answered before it is flushed.
    RenewalNotFlushed,
    /// PostgreSQL: tokens are counted, without the clock.
    OnlyCounter,
    /// PostgreSQL: a renewal does not compare the end of the lease.
    RenewalRevives,
    /// PostgreSQL: the row of a free resource is deleted, and tokens are counted.
    RowDeleted,
    /// PostgreSQL: a new waiter leaves the row of its resource quiet.
    QuietDespiteWaiter,
    /// PostgreSQL: a new tombstone leaves the row of its resource quiet.
    QuietDespiteTombstone,
    /// PostgreSQL: a claim in the step of the grant does not ask whether a transaction is open.
    ClaimPasses,
}
