use models::{assert_holds, assert_needed};

use super::{Cohort, Flaw};

#[test]
fn holds() {
    assert_holds("revoked", Cohort::revoked());
    assert_holds("slow", Cohort::slow());
    assert_holds("shrinking", Cohort::shrinking());
}

#[test]
fn every_rule_is_needed() {
    const OWN: &str = "own shared only";
    assert_needed([
        (Flaw::PassesToAnybody, "order", Cohort::shrinking()),
        (Flaw::CountsFromAnswer, "order", Cohort::shrinking()),
        (Flaw::CountsUnanswered, "order", Cohort::shrinking()),
        (Flaw::PassesAfterDeadline, "in time", Cohort::slow()),
        (Flaw::PassesBeyondReserve, "unique", Cohort::revoked()),
        (Flaw::ReplayTellsWish, "unique", Cohort::revoked()),
        (Flaw::NonceIsShared, OWN, Cohort::revoked()),
        (Flaw::ReleaseComparesProcess, OWN, Cohort::revoked()),
        (Flaw::RenewComparesProcess, OWN, Cohort::revoked()),
        (Flaw::ForceIsNotCompared, OWN, Cohort::revoked()),
    ]);
}
