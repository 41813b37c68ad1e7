use models::{Flawed, assert_holds, assert_needed, assert_story_breaks, assert_story_stops};

use super::{Flaw, Tokens};

const ORDER: &str = "order";
const UNIQUE: &str = "unique";

const fn three(attempts: usize) -> Tokens<3> {
    Tokens::of(attempts)
}

const fn five(attempts: usize) -> Tokens<5> {
    Tokens::of(attempts)
}

/// Attempts know two of the three nodes, and the third node or the one that takes its place.
const fn replacing() -> Tokens<4> {
    Tokens {
        replaces: true,
        healings: 1,
        ..Tokens::of(2)
    }
}

/// The counters start at 0 or 1.
const fn uneven<const N: usize>(tokens: Tokens<N>) -> Tokens<N> {
    let uneven = 1;
    Tokens { uneven, ..tokens }
}

/// An acquire comes in again.
const fn resent<const N: usize>(tokens: Tokens<N>) -> Tokens<N> {
    let resent = 1;
    Tokens { resent, ..tokens }
}

/// Nodes lose their state this many times, and somebody begins to heal them this many times.
const fn losing<const N: usize>(losses: u8, healings: usize, tokens: Tokens<N>) -> Tokens<N> {
    Tokens {
        losses,
        healings,
        ..tokens
    }
}

/// The resource is new, at least to some nodes, and nodes are healed by listing the counters
/// of others.
const fn listing<const N: usize>(tokens: Tokens<N>) -> Tokens<N> {
    let lists = true;
    Tokens { lists, ..tokens }
}

/// Catches: a repeated or falling token after a resent acquire, a loss, a healing or a replacement.
#[test]
fn three_nodes_hold() {
    let at_least = Some(4);
    let floor = uneven(three(3));
    assert_holds("a resent acquire", resent(uneven(three(3))));
    assert_holds("a floor", Tokens { at_least, ..floor });
    assert_holds("a loss", losing(1, 1, three(3)));
    assert_holds(
        "a loss and a resent acquire",
        losing(1, 1, resent(uneven(three(2)))),
    );
    assert_holds("two losses", losing(2, 2, three(2)));
    assert_holds("a node is replaced", uneven(replacing()));
}

/// Catches: a node healed from lists that lack a resource which is new to some nodes.
#[test]
fn a_new_resource_holds() {
    assert_holds("a loss", losing(1, 1, listing(three(3))));
    assert_holds(
        "a loss, a resent acquire",
        losing(1, 1, listing(resent(three(2)))),
    );
    assert_holds("two losses", losing(2, 2, listing(three(2))));
    assert_holds("five nodes and a loss", losing(1, 1, listing(five(2))));
}

/// Catches: a majority of three nodes that behaves otherwise than a majority of two.
#[test]
fn five_nodes_hold() {
    assert_holds("five nodes", five(3));
    assert_holds("a resent acquire", resent(uneven(five(2))));
    assert_holds("a loss", losing(1, 1, five(2)));
}

/// The other scenarios forget facts, which hides no fault.
#[test]
fn nothing_is_forgotten() {
    let two = Tokens {
        forgets_nothing: true,
        ..three(2)
    };
    assert_holds("a resent acquire", resent(uneven(two.clone())));
    assert_holds("a loss", losing(1, 1, two.clone()));
    assert_holds("three attempts", Tokens { attempts: 3, ..two });
}

#[test]
fn every_rule_is_needed() {
    let lost = || losing(1, 1, listing(three(2)));
    let lost_twice = || losing(2, 2, listing(three(2)));
    assert_needed([
        (Flaw::NaiveMaximum, ORDER, three(3)),
        (Flaw::NaiveMaximum, UNIQUE, three(3)),
        (Flaw::UnconditionalRaise, UNIQUE, three(2)),
        (Flaw::RaiseIgnoresCounter, UNIQUE, resent(three(2))),
        (Flaw::LateGrantIsRaised, UNIQUE, uneven(three(2))),
        (
            Flaw::EqualCountsAreNotRaised,
            UNIQUE,
            losing(1, 1, uneven(three(2))),
        ),
        (Flaw::ResentDoesNotCount, UNIQUE, resent(three(2))),
        (Flaw::LostStartsAtBase, ORDER, losing(1, 0, three(2))),
        (Flaw::DelayedRestart, ORDER, losing(1, 0, three(2))),
        (
            Flaw::HealingOnlyReads,
            ORDER,
            losing(1, 1, uneven(three(2))),
        ),
        (
            Flaw::HealingReadsTooFew,
            UNIQUE,
            losing(1, 1, uneven(three(2))),
        ),
        (Flaw::SeedReplaces, ORDER, losing(1, 2, three(2))),
        (Flaw::SeedNamesNoLoss, ORDER, losing(2, 2, three(2))),
        (Flaw::HealingListsTooFew, ORDER, lost()),
        (Flaw::HealingListsAnyNode, ORDER, lost_twice()),
        (Flaw::HealingSeedsNothing, ORDER, lost()),
        (Flaw::HealingNamesNoLife, ORDER, lost_twice()),
    ]);
    assert_needed([(Flaw::OldNodeServesOn, ORDER, replacing())]);
}

/// Catches: a rule that three nodes need and five do not, or the other way round.
#[test]
fn every_rule_of_five_nodes_is_needed() {
    assert_needed([
        (Flaw::NaiveMaximum, ORDER, uneven(five(2))),
        (Flaw::NaiveMaximum, UNIQUE, uneven(five(2))),
        (Flaw::MajorityOfTheGranting, ORDER, uneven(five(2))),
        (Flaw::UnconditionalRaise, UNIQUE, five(2)),
        (Flaw::DelayedRestart, ORDER, losing(1, 0, uneven(five(2)))),
        (Flaw::HealingOnlyReads, UNIQUE, losing(1, 1, five(2))),
    ]);
}

/// Catches: a rule that is not needed, and is not known as such.
#[test]
fn two_rules_are_not_needed() {
    let lost = losing(1, 1, resent(three(2)));
    assert_holds(
        "a raise ignores the lease",
        lost.with(Flaw::RaiseIgnoresLease),
    );
    let kept = uneven(three(2)).with(Flaw::EqualCountsAreNotRaised);
    assert_holds("equal counts are not raised, and nothing is lost", kept);
}

/// The search for this fault takes half a minute, so the test gives its story. There are never two
/// nodes without state at once.
#[test]
fn a_raise_of_before_a_loss() {
    let story = [
        "Grant { attempt: 0, node: 2, of_new: false }",
        "Grant { attempt: 1, node: 2, of_new: false }",
        "Lose { node: 2 }",
        "Heal { healing: 0, patient: 2, node: 0 }",
        "Grant { attempt: 1, node: 0, of_new: false }",
        "FixAndRaise { attempt: 1, counted: {0, 2}, node: 0 }",
        "Read { healing: 0, node: 1 }",
        "Seed { healing: 0, node: 2 }",
        "Lose { node: 0 }",
        "Heal { healing: 1, patient: 0, node: 1 }",
        "Grant { attempt: 0, node: 1, of_new: false }",
        "Read { healing: 1, node: 2 }",
        "GrantAgain { attempt: 1, node: 2, heard: false }",
        "Raise { attempt: 1, node: 2 }",
        "Seed { healing: 1, node: 0 }",
        "Grant { attempt: 0, node: 0, of_new: false }",
        "FixAndRaise { attempt: 0, counted: {0, 1}, node: 0 }",
        "Raise { attempt: 0, node: 1 }",
    ];
    let tokens = losing(2, 2, resent(uneven(three(2))));
    let flawed = tokens.clone().with(Flaw::RaiseNamesNoLoss);
    assert_story_breaks("a raise names no loss", UNIQUE, &flawed, &story);
    let refused = "Raise { attempt: 1, node: 2 }";
    assert_story_stops("a raise names its loss", refused, &tokens, &story);
}
