use models::{assert_breaks, assert_holds, assert_needed};

use super::{Flaw, Holding};

const ONE: &str = "one holder";

const fn duel() -> Holding<3> {
    Holding::duel()
}

const fn retry() -> Holding<3> {
    Holding::retry()
}

const fn losing(model: Holding<3>) -> Holding<3> {
    Holding { losses: 1, ..model }
}

#[test]
fn holds() {
    assert_holds("two rivals, three nodes", duel());
    assert_holds("two rivals, five nodes", Holding::<5>::duel());
    assert_holds("one tries once more", retry());
    assert_holds("a node loses its state", losing(retry()));
}

/// Redlock does not promise one holder if a clock jumps. The tokens need no clock.
#[test]
fn a_clock_that_jumps_makes_two_holders() {
    let jumps = 1;
    assert_breaks("a clock jumps", ONE, Holding { jumps, ..duel() });
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (Flaw::NonceIsReused, ONE, retry()),
        (Flaw::NonceIsReused, "own lease only", retry()),
        (Flaw::UndoIsNotCompared, ONE, retry()),
        (Flaw::RenewIsNotCompared, ONE, duel()),
        (Flaw::MinorityAcquires, ONE, duel()),
        (Flaw::MinorityRenews, ONE, duel()),
        (Flaw::TimeFromAnswer, ONE, duel()),
        (Flaw::LostServesAtOnce, ONE, losing(duel())),
        (Flaw::HealedWhileQuiet, ONE, losing(duel())),
    ]);
}
