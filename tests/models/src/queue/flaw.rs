/// One rule of the protocol is left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Release and cancel leave no tombstone that refuses a late acquire.
    NoTombstone,
    /// A release leaves no tombstone although an acquire of its attempt may arrive later.
    NoTombstoneOfLate,
    /// A release leaves no tombstone although another attempt has the acquisition.
    NoTombstoneOfShared,
    /// Cancel ends the acquisition of the attempt.
    CancelIgnoresAttempts,
    /// Lease and entry remember the attempt that asked last, not all that asked.
    OnlyLatestAttempt,
    /// An acquire that finds its own provisional lease gives it its full length.
    ReplayExtends,
    /// An acquire that finds its own lease draws a new token.
    ReplayIncrements,
    /// A push uses the next token without drawing it; its confirm draws it.
    ConfirmIncrements,
    /// A release ends whatever lease it finds.
    ReleaseIsNotCompared,
    /// Any caller that finds the lease free gets it, instead of the head of the queue.
    GrantsToCaller,
    /// A pushed lease has its full length at once.
    PushIsFull,
    /// An entry leaves the queue when it is granted, not when the grant is confirmed.
    EntryLeavesAtGrant,
    /// A poll clears the mark of its client before it checks whose provisional lease ran out.
    PollClearsTooEarly,
    /// The caller of an acquire is passed over if its client was set aside in the same script.
    CallerIsNotExempt,
    /// The end of a full lease is not remembered.
    ExpiryIsForgotten,
    /// The attempt is sent first, and registered where pushes look for it after that.
    RegistersLate,
    /// A push for an attempt that nobody waits for is answered with a release of the lease.
    UnknownPushIsReleased,
    /// A push is accepted by any attempt of its acquisition.
    PushMatchesHolder,
    /// A push for an attempt that no longer waits is answered with a cancel, whatever it holds.
    LatePushCancels,
    /// A lease that was returned before its confirm is not remembered where pushes look.
    UnconfirmedIsForgotten,
    /// A waiter in the queue only waits for its push.
    NeverPolls,
    /// An acquisition with attempts in two processes returns before its confirm.
    DetachedReturnsEarly,
    /// A holder that learns that it lost its lease does nothing more.
    LossIsNotCancelled,
}
