//! The order of steps in which one lock service replaces another; and every step is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    handover::{
        Handover, Late,
        Step::{self, ChangeIssuer, Look, LookAtTheMark, Reinstate, Retire, SealMark},
    },
};

const LATE: &str = "no late claim";
const GETS_IN: &str = "the latest gets in";
const IN_PLACE: &str = "who is in place grants";
const NOT_IN_PLACE: &str = "who is not grants nothing";

fn with(steps: &[Step]) -> Handover {
    Handover::there_and_back().with_steps(steps)
}

fn without(step: Step) -> Handover {
    Handover::there_and_back().without(step)
}

#[test]
fn as_built() {
    assert_holds("as built", Handover::there_and_back());
}

/// Meanwhile nobody is refused except by the store: that is the whole difference.
#[test]
fn the_floor_comes_last() {
    let steps = [Retire, Look, ChangeIssuer, SealMark, Reinstate];
    assert_holds("the floor comes last", with(&steps));
}

#[test]
fn the_old_service_is_retired_last() {
    let steps = [Look, ChangeIssuer, SealMark, Reinstate, Retire];
    assert_breaks("retired last", LATE, with(&steps));
}

#[test]
fn the_floor_is_chosen_before_the_old_service_is_retired() {
    let steps = [Look, Retire, Reinstate, ChangeIssuer, SealMark];
    assert_breaks("chosen first", LATE, with(&steps));
}

#[test]
fn the_old_service_is_not_retired() {
    assert_breaks("not retired", LATE, without(Retire));
}

#[test]
fn the_floor_is_above_the_mark_alone() {
    let steps = [Retire, LookAtTheMark, Reinstate, ChangeIssuer, SealMark];
    assert_breaks("above the mark alone", LATE, with(&steps));
}

#[test]
fn the_new_service_has_no_floor() {
    let steps = [Retire, Look, ChangeIssuer, SealMark];
    assert_breaks("no floor", GETS_IN, with(&steps));
}

#[test]
fn the_issuer_stays() {
    assert_breaks("the issuer stays", GETS_IN, without(ChangeIssuer));
}

#[test]
fn the_mark_is_not_sealed() {
    assert_breaks("not sealed", GETS_IN, without(SealMark));
}

#[test]
fn the_mark_is_sealed_before_the_issuer_changes() {
    let steps = [Retire, Look, Reinstate, SealMark, ChangeIssuer];
    assert_breaks("the mark first", GETS_IN, with(&steps));
}

#[test]
fn a_late_request_is_compared() {
    let compared = Handover::there_and_back().with_a_late_request(Late::Compared);
    assert_holds("a late request", compared);
}

/// An operator who turned back has the old service retired again by a late request; and a service
/// that was retired comes back.
#[test]
fn a_late_request_is_obeyed() {
    for property in [IN_PLACE, NOT_IN_PLACE] {
        let obeyed = Handover::there_and_back().with_a_late_request(Late::Obeyed);
        assert_breaks("a late request that is obeyed", property, obeyed);
    }
}

/// The request of the operator who turned back changed nothing, and so was not counted.
#[test]
fn a_late_request_is_compared_to_changes_alone() {
    let compared = Handover::there_and_back().with_a_late_request(Late::ComparedToChanges);
    assert_breaks("compared to changes alone", IN_PLACE, compared);
}
