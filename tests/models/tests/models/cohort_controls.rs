//! Every rule of the cohort is needed: without it, something breaks.

use models::{
    checking::assert_breaks,
    cohort::{Cohort, Flaw},
};

#[test]
fn passes_to_anybody() {
    let cohort = Cohort::shrinking().with(Flaw::PassesToAnybody);
    assert_breaks("passes to anybody", "order", cohort);
}

#[test]
fn counts_from_the_answer() {
    let cohort = Cohort::shrinking().with(Flaw::CountsFromAnswer);
    assert_breaks("counts from the answer", "order", cohort);
}

#[test]
fn counts_what_is_not_answered() {
    let cohort = Cohort::shrinking().with(Flaw::CountsUnanswered);
    assert_breaks("counts what is not answered", "order", cohort);
}

#[test]
fn passes_after_the_deadline() {
    let cohort = Cohort::slow().with(Flaw::PassesAfterDeadline);
    assert_breaks("passes after the deadline", "in time", cohort);
}

#[test]
fn passes_beyond_the_reserve() {
    let cohort = Cohort::revoked().with(Flaw::PassesBeyondReserve);
    assert_breaks("passes beyond the reserve", "unique", cohort);
}

#[test]
fn a_replay_tells_more_than_is_reserved() {
    let cohort = Cohort::revoked().with(Flaw::ReplayTellsWish);
    assert_breaks("a replay tells the wish", "unique", cohort);
}

#[test]
fn the_nonce_is_shared() {
    let cohort = Cohort::revoked().with(Flaw::NonceIsShared);
    assert_breaks("the nonce is shared", "own shared only", cohort);
}

#[test]
fn release_compares_the_process() {
    let cohort = Cohort::revoked().with(Flaw::ReleaseComparesProcess);
    assert_breaks("release compares the process", "own shared only", cohort);
}

#[test]
fn renew_compares_the_process() {
    let cohort = Cohort::revoked().with(Flaw::RenewComparesProcess);
    assert_breaks("renew compares the process", "own shared only", cohort);
}

#[test]
fn force_is_not_compared() {
    let cohort = Cohort::revoked().with(Flaw::ForceIsNotCompared);
    assert_breaks("force is not compared", "own shared only", cohort);
}
