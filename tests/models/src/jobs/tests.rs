use models::{assert_holds, assert_needed};

use super::{Flaw, Jobs};

const TWICE: &str = "no step twice";

#[test]
fn holds() {
    assert_holds("jobs", Jobs::as_built());
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (Flaw::MarkerOutside, TWICE, Jobs::as_built()),
        (Flaw::LooksBeforeTheClaim, TWICE, Jobs::as_built()),
        (Flaw::ForgetsByAge, TWICE, Jobs::as_built()),
        (
            Flaw::FailureUnfenced,
            "what is done does not fail",
            Jobs::as_built(),
        ),
    ]);
}
