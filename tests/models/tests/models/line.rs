//! What becomes of those in line whose token is too small by the time it is their turn; and every
//! rule is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    line::{Flaw, Line},
};

const FLOOR: &str = "above the floor";
const OWN: &str = "its own floor";
const ENDED: &str = "no lease that ran out";

#[test]
fn a_line_whose_service_is_retired_and_reinstated() {
    assert_holds("retired", Line::retired());
}

#[test]
fn a_line_whose_service_is_lifted() {
    assert_holds("lifted", Line::lifted());
}

#[test]
fn nobody_is_bound() {
    let flawed = |line: Line| line.with(Flaw::NobodyIsBound);
    assert_breaks("not bound", FLOOR, flawed(Line::retired()));
    assert_breaks("not bound", FLOOR, flawed(Line::lifted()));
}

#[test]
fn the_first_is_bound_too() {
    let flawed = Line::retired().with(Flaw::TheFirstIsBoundToo);
    assert_breaks("the first is bound", "what was told is kept", flawed);
}

#[test]
fn the_line_is_looked_at_once() {
    let flawed = Line::lifted().with(Flaw::BoundByOneLook);
    assert_breaks("one look", FLOOR, flawed);
}

#[test]
fn the_floor_is_raised_last() {
    let flawed = Line::lifted().with(Flaw::BoundBeforeTheFloor);
    assert_breaks("the floor is raised last", FLOOR, flawed);
}

#[test]
fn what_is_found_was_told() {
    let flawed = Line::lifted().with(Flaw::WhatIsFoundWasTold);
    assert_breaks("found is told", OWN, flawed);
}

#[test]
fn others_keep_the_place() {
    let flawed = Line::lifted().with(Flaw::OthersKeepThePlace);
    assert_breaks("others keep it", OWN, flawed);
}

#[test]
fn what_is_gone_has_ended() {
    let flawed = Line::lifted().with(Flaw::WhatIsGoneHasEnded);
    assert_breaks("gone has ended", "no refusal for nothing", flawed);
}

#[test]
fn who_joins_binds_nothing() {
    let flawed = Line::lifted().with(Flaw::WhoJoinsBindsNothing);
    assert_breaks("who joins binds nothing", OWN, flawed);
}

#[test]
fn what_was_heard_counts() {
    let flawed = Line::lifted().with(Flaw::WhatWasHeardCounts);
    assert_breaks("what was heard counts", ENDED, flawed);
}

#[test]
fn who_has_no_place_is_told_too() {
    let flawed = Line::lifted().with(Flaw::WhoHasNoPlaceIsToldToo);
    assert_breaks("who has no place is told", ENDED, flawed);
}
