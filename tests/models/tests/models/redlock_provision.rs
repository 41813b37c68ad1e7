//! No node of a Redlock begins a second time; and every rule is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    redlock::provision::{Flaw, Provision},
};

const SECOND: &str = "no second beginning";

#[test]
fn two_provision_at_once() {
    assert_holds("two provision at once", Provision::two_at_once());
}

#[test]
fn one_round() {
    let provision = Provision::two_at_once().with(Flaw::OneRound);
    assert_breaks("one round", SECOND, provision);
}

#[test]
fn a_commit_names_no_number() {
    let provision = Provision::two_at_once().with(Flaw::CommitNamesNoNumber);
    assert_breaks("a commit names no number", SECOND, provision);
}

#[test]
fn no_second_look() {
    let provision = Provision::two_at_once().with(Flaw::NoSecondLook);
    assert_breaks("no second look", SECOND, provision);
}
