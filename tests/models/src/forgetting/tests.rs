use models::{assert_holds, assert_needed};

use super::{Flaw, Forgetting};

#[test]
fn holds() {
    assert_holds("forgetting", Forgetting::as_built());
}

#[test]
fn every_rule_is_needed() {
    const BACK: &str = "no token goes back";
    const LIVES: &str = "a living holder stays";
    const FRESH: &str = "a fresh grant gets in";
    let built = Forgetting::as_built;
    assert_needed([
        (Flaw::NoFloor, BACK, built()),
        (Flaw::FloorLater, BACK, built()),
        (Flaw::AgeByClaimAlone, LIVES, built()),
        (Flaw::AnyToken, FRESH, built()),
        (Flaw::TwoScales, FRESH, built()),
    ]);
}
