//! Every rule of the tokens of Redlock is needed: without it, something breaks.

use models::{
    checking::{assert_breaks, assert_holds, assert_story_breaks, assert_story_stops},
    redlock::tokens::{Flaw, Tokens},
};

const fn three(attempts: usize) -> Tokens<3> {
    Tokens::of(attempts)
}

const fn five(attempts: usize) -> Tokens<5> {
    Tokens::of(attempts)
}

#[test]
fn the_naive_maximum_of_three() {
    let tokens = three(3).with(Flaw::NaiveMaximum);
    assert_breaks("naive maximum, three nodes", "order", tokens.clone());
    assert_breaks("naive maximum, three nodes", "unique", tokens);
}

#[test]
fn the_naive_maximum_of_five() {
    let tokens = five(2).uneven(1).with(Flaw::NaiveMaximum);
    assert_breaks("naive maximum, five nodes", "order", tokens.clone());
    assert_breaks("naive maximum, five nodes", "unique", tokens);
}

#[test]
fn a_majority_of_the_granting_of_five() {
    let tokens = five(2).uneven(1).with(Flaw::MajorityOfTheGranting);
    assert_breaks("majority of the granting", "order", tokens);
}

#[test]
fn an_unconditional_raise() {
    let tokens = three(2).with(Flaw::UnconditionalRaise);
    assert_breaks("unconditional raise, three nodes", "unique", tokens);
    let tokens = five(2).with(Flaw::UnconditionalRaise);
    assert_breaks("unconditional raise, five nodes", "unique", tokens);
}

#[test]
fn a_raise_that_ignores_the_counter() {
    let tokens = three(2).resent(1).with(Flaw::RaiseIgnoresCounter);
    assert_breaks("a raise ignores the counter", "unique", tokens);
}

#[test]
fn a_raise_that_ignores_the_lease_harms_no_token() {
    let tokens = three(2)
        .resent(1)
        .losing(1, 1)
        .with(Flaw::RaiseIgnoresLease);
    assert_holds("a raise ignores the lease", tokens);
}

#[test]
fn a_late_grant_is_raised() {
    let tokens = three(2).uneven(1).with(Flaw::LateGrantIsRaised);
    assert_breaks("a late grant is raised", "unique", tokens);
}

#[test]
fn equal_counts_are_not_raised() {
    let tokens = three(2).uneven(1).with(Flaw::EqualCountsAreNotRaised);
    assert_holds("equal counts are not raised", tokens.clone());
    assert_breaks(
        "equal counts are not raised, and a loss",
        "unique",
        tokens.losing(1, 1),
    );
}

#[test]
fn a_resent_acquire_does_not_count() {
    let tokens = three(2).resent(1).with(Flaw::ResentDoesNotCount);
    assert_breaks("a resent acquire does not count", "unique", tokens);
}

#[test]
fn a_node_that_lost_its_state_starts_at_its_base() {
    let tokens = three(2).losing(1, 0).with(Flaw::LostStartsAtBase);
    assert_breaks("starts at its base", "order", tokens);
}

#[test]
fn a_delayed_restart() {
    let tokens = three(2).losing(1, 0).with(Flaw::DelayedRestart);
    assert_breaks("delayed restart", "order", tokens);
    let tokens = five(2).uneven(1).losing(1, 0).with(Flaw::DelayedRestart);
    assert_breaks("delayed restart, five nodes", "order", tokens);
}

#[test]
fn healing_only_reads() {
    let tokens = three(2).uneven(1).losing(1, 1).with(Flaw::HealingOnlyReads);
    assert_breaks("healing only reads", "order", tokens);
    let tokens = five(2).losing(1, 1).with(Flaw::HealingOnlyReads);
    assert_breaks("healing only reads, five nodes", "unique", tokens);
}

#[test]
fn healing_reads_too_few() {
    let tokens = three(2).uneven(1).losing(1, 1);
    let tokens = tokens.with(Flaw::HealingReadsTooFew);
    assert_breaks("healing reads too few", "unique", tokens);
    let tokens = five(2).losing(1, 1).with(Flaw::HealingReadsTooFew);
    assert_breaks("healing reads too few, five nodes", "unique", tokens);
}

#[test]
fn a_seed_replaces_a_counter() {
    let tokens = three(2).losing(1, 2).with(Flaw::SeedReplaces);
    assert_breaks("a seed replaces", "order", tokens);
}

#[test]
fn a_seed_of_an_earlier_loss() {
    let tokens = three(2).losing(2, 2).with(Flaw::SeedNamesNoLoss);
    assert_breaks("a seed names no loss", "order", tokens);
}

/// The search for this one takes half a minute, so its story is given. There are never two nodes
/// without state at once.
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
    let tokens = three(2).uneven(1).resent(1).losing(2, 2);
    let flawed = tokens.clone().with(Flaw::RaiseNamesNoLoss);
    assert_story_breaks("a raise names no loss", "unique", &flawed, &story);
    let refused = "Raise { attempt: 1, node: 2 }";
    assert_story_stops("a raise names its loss", refused, &tokens, &story);
}

#[test]
fn the_old_node_serves_on() {
    let tokens = Tokens::<4>::of(2).replacing().with(Flaw::OldNodeServesOn);
    assert_breaks("the old node serves on", "order", tokens);
}

#[test]
fn healing_lists_too_few() {
    let tokens = three(2).losing(1, 1).listing();
    let tokens = tokens.with(Flaw::HealingListsTooFew);
    assert_breaks("lists too few", "order", tokens);
    let tokens = five(2).losing(1, 1).listing();
    let tokens = tokens.with(Flaw::HealingListsTooFew);
    assert_breaks("lists too few, five nodes", "order", tokens);
}

#[test]
fn healing_lists_a_node_that_does_not_serve() {
    let tokens = three(2).losing(2, 2).listing();
    let tokens = tokens.with(Flaw::HealingListsAnyNode);
    assert_breaks("lists a node that does not serve", "order", tokens);
}

#[test]
fn healing_seeds_nothing() {
    let tokens = three(2).losing(1, 1).listing();
    let tokens = tokens.with(Flaw::HealingSeedsNothing);
    assert_breaks("seeds nothing", "order", tokens);
}

#[test]
fn a_node_serves_that_was_healed_in_another_life() {
    let tokens = three(2).losing(2, 2).listing();
    let tokens = tokens.with(Flaw::HealingNamesNoLife);
    assert_breaks("names no incarnation", "order", tokens);
}
