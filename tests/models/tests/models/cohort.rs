//! The protocol of the cohort holds in every scenario.

use models::{checking::assert_holds, cohort::Cohort};

#[test]
fn revoked() {
    assert_holds("revoked", Cohort::revoked());
}

#[test]
fn slow() {
    assert_holds("slow", Cohort::slow());
}

#[test]
fn shrinking() {
    assert_holds("shrinking", Cohort::shrinking());
}
