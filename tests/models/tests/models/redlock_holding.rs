//! Redlock has one holder, as long as the clocks of its nodes run evenly; and every rule is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    redlock::holding::{Flaw, Holding},
};

const fn duel() -> Holding<3> {
    Holding::duel()
}

const fn retry() -> Holding<3> {
    Holding::retry()
}

#[test]
fn two_rivals() {
    assert_holds("two rivals, three nodes", duel());
    assert_holds("two rivals, five nodes", Holding::<5>::duel());
}

#[test]
fn one_tries_once_more() {
    assert_holds("one tries once more", retry());
}

#[test]
fn a_node_loses_its_state() {
    assert_holds("a node loses its state", retry().losing());
}

/// What Redlock does not promise. The tokens need no clock.
#[test]
fn a_clock_that_jumps_makes_two_holders() {
    assert_breaks("a clock jumps", "one holder", duel().jumping());
}

#[test]
fn a_nonce_is_used_again() {
    let holding = retry().with(Flaw::NonceIsReused);
    assert_breaks("a nonce is used again", "one holder", holding.clone());
    assert_breaks("a nonce is used again", "own lease only", holding);
}

#[test]
fn an_undo_is_not_compared() {
    let holding = retry().with(Flaw::UndoIsNotCompared);
    assert_breaks("an undo is not compared", "one holder", holding);
}

#[test]
fn a_renewal_is_not_compared() {
    let holding = duel().with(Flaw::RenewIsNotCompared);
    assert_breaks("a renewal is not compared", "one holder", holding);
}

#[test]
fn a_minority_acquires() {
    let holding = duel().with(Flaw::MinorityAcquires);
    assert_breaks("a minority acquires", "one holder", holding);
}

#[test]
fn a_minority_renews() {
    let holding = duel().with(Flaw::MinorityRenews);
    assert_breaks("a minority renews", "one holder", holding);
}

#[test]
fn time_is_counted_from_the_answer() {
    let holding = duel().with(Flaw::TimeFromAnswer);
    assert_breaks("time from the answer", "one holder", holding);
}

#[test]
fn a_node_that_lost_its_state_grants_at_once() {
    let holding = duel().losing().with(Flaw::LostServesAtOnce);
    assert_breaks("grants at once", "one holder", holding);
}

#[test]
fn a_node_serves_while_it_has_to_be_quiet() {
    let holding = duel().losing().with(Flaw::HealedWhileQuiet);
    assert_breaks("serves while it has to be quiet", "one holder", holding);
}
