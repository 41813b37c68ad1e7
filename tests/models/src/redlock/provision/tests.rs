use models::{assert_holds, assert_needed};

use super::{Flaw, Provision};

const SECOND: &str = "no second beginning";

#[test]
fn holds() {
    assert_holds("two provision at once", Provision::two_at_once());
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (Flaw::OneRound, SECOND, Provision::two_at_once()),
        (Flaw::CommitNamesNoNumber, SECOND, Provision::two_at_once()),
        (Flaw::NoSecondLook, SECOND, Provision::two_at_once()),
    ]);
}
