//! What becomes of those in line whose token is too small by the time it is their turn; and every
//! rule is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    line::{Flaw, Line},
};

const OWN: &str = "its own floor";
const ENDED: &str = "no lease that ran out";

#[test]
fn a_line_as_built() {
    assert_holds("as built", Line::as_built());
}

#[test]
fn the_first_is_bound_too() {
    let flawed = Line::as_built().with(Flaw::TheFirstIsBoundToo);
    assert_breaks("the first is bound", "what was told is kept", flawed);
}

#[test]
fn what_is_found_was_told() {
    let flawed = Line::as_built().with(Flaw::WhatIsFoundWasTold);
    assert_breaks("found is told", OWN, flawed);
}

#[test]
fn others_keep_the_place() {
    let flawed = Line::as_built().with(Flaw::OthersKeepThePlace);
    assert_breaks("others keep it", OWN, flawed);
}

#[test]
fn what_is_gone_has_ended() {
    let flawed = Line::as_built().with(Flaw::WhatIsGoneHasEnded);
    assert_breaks("gone has ended", "no refusal for nothing", flawed);
}

#[test]
fn who_joins_binds_nothing() {
    let flawed = Line::as_built().with(Flaw::WhoJoinsBindsNothing);
    assert_breaks("who joins binds nothing", OWN, flawed);
}

#[test]
fn what_was_heard_counts() {
    let flawed = Line::as_built().with(Flaw::WhatWasHeardCounts);
    assert_breaks("what was heard counts", ENDED, flawed);
}

#[test]
fn who_has_no_place_is_told_too() {
    let flawed = Line::as_built().with(Flaw::WhoHasNoPlaceIsToldToo);
    assert_breaks("who has no place is told", ENDED, flawed);
}
