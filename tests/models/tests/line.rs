//! What becomes of those in line whose token is too small by the time it is their turn; and every
//! rule is needed.
#![forbid(unsafe_code)]

use models::{
    checking::{assert_breaks, assert_holds},
    line::{Flaw, Line},
};

const FLOOR: &str = "above the floor";
const OWN: &str = "its own floor";
const THERE: &str = "what is told is there";

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
fn its_end_is_not_watched() {
    let flawed = Line::lifted().with(Flaw::ItsEndIsNotWatched);
    assert_breaks("its end is not watched", THERE, flawed);
}

#[test]
fn its_bond_is_not_watched() {
    let flawed = |line: Line| line.with(Flaw::ItsBondIsNotWatched);
    assert_breaks("its bond is not watched", FLOOR, flawed(Line::lifted()));
    assert_breaks("its bond is not watched", FLOOR, flawed(Line::retired()));
}

#[test]
fn the_last_one_is_watched() {
    let flawed = Line::lifted().with(Flaw::TheLastOneIsWatched);
    assert_breaks("the last one is watched", THERE, flawed);
}

#[test]
fn heard_is_heard() {
    let flawed = Line::lifted().with(Flaw::HeardIsHeard);
    assert_breaks("heard is heard", THERE, flawed);
}
