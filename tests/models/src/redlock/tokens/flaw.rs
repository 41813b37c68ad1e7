/// One rule of the token left out. Each of them must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// The greatest count of a majority is returned; no counter is raised.
    NaiveMaximum,
    /// A majority of the nodes that granted is to be raised, and not a majority of all.
    MajorityOfTheGranting,
    /// A raise looks at nothing.
    UnconditionalRaise,
    /// A raise looks at the lease, and not at the counter.
    RaiseIgnoresCounter,
    /// A raise looks at the counter, and not at the lease.
    RaiseIgnoresLease,
    /// A grant that came after the token was fixed is raised and counted too.
    LateGrantIsRaised,
    /// Nothing is raised if all nodes granted the same count.
    EqualCountsAreNotRaised,
    /// A re-sent acquire that finds the lease of its attempt, or none, grants the count as it is.
    ResentDoesNotCount,
    /// A node that lost its state starts at its base.
    LostStartsAtBase,
    /// A node that lost its state starts at its base, but only when every attempt has ended.
    DelayedRestart,
    /// Healing reads the other counters without counting them up.
    HealingOnlyReads,
    /// Healing reads one node less than a majority.
    HealingReadsTooFew,
    /// A seed replaces a counter that there is.
    SeedReplaces,
    /// A seed does not say which loss of state it is for.
    SeedNamesNoLoss,
    /// A raise does not say before which loss of state the count was granted.
    RaiseNamesNoLoss,
    /// Who makes a node whole lists one node less than a majority.
    CompletingListsTooFew,
    /// Who makes a node whole lists nodes that have gaps themselves, or lost their state meanwhile.
    CompletingListsAnyNode,
    /// Who makes a node whole leaves out what was listed.
    CompletingSeedsNothing,
    /// That a node is whole is said of whatever life it is in.
    CompletingNamesNoLife,
    /// A new node is brought in while some still ask the old one.
    OldNodeServesOn,
}
