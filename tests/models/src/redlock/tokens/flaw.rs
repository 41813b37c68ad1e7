/// One rule of the tokens is left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The greatest count of a majority is returned; no counter is raised.
    NaiveMaximum,
    /// A majority of the nodes that granted is raised, not a majority of all nodes.
    MajorityOfTheGranting,
    /// A raise compares nothing.
    UnconditionalRaise,
    /// A raise compares the lease, but not the counter.
    RaiseIgnoresCounter,
    /// A raise compares the counter, but not the lease.
    RaiseIgnoresLease,
    /// A grant that arrived after the token was fixed is raised and counted, too.
    LateGrantIsRaised,
    /// Nothing is raised if all nodes granted the same count.
    EqualCountsAreNotRaised,
    /// A re-sent acquire that finds the lease of its attempt, or no lease, grants the count as it
    /// is.
    ResentDoesNotCount,
    /// A node that lost its state starts at its base.
    LostStartsAtBase,
    /// A node that lost its state starts at its base, but only after every attempt has ended.
    DelayedRestart,
    /// Healing reads the other counters without counting them up.
    HealingOnlyReads,
    /// Healing reads one node fewer than a majority.
    HealingReadsTooFew,
    /// A seed replaces an existing counter.
    SeedReplaces,
    /// A seed does not say which loss of state it is for.
    SeedNamesNoLoss,
    /// A raise does not say before which loss of state its count was granted.
    RaiseNamesNoLoss,
    /// Healing lists one node fewer than a majority.
    HealingListsTooFew,
    /// Healing lists nodes that do not serve, or have lost their state meanwhile.
    HealingListsAnyNode,
    /// Healing leaves out the counters that were listed.
    HealingSeedsNothing,
    /// A node is brought into service without saying in which incarnation.
    HealingNamesNoLife,
    /// A new node is brought in while some clients still ask the old one.
    OldNodeServesOn,
}
