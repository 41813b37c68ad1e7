//! The steps by which one lock service takes the place of another; and every step is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    handover::{
        Handover, Lift,
        Step::{self, ChangeIssuer, Choose, ChooseTheMark, Probe, RaiseMark, SealMark},
    },
};

const LATE: &str = "no late claim";
const BOTH: &str = "never both";
const GETS_IN: &str = "the latest gets in";

fn with(steps: &[Step]) -> Handover {
    Handover::there_and_back().with_steps(steps)
}

#[test]
fn as_built() {
    assert_holds("as built", Handover::there_and_back());
}

/// It is refused until the clock has reached its counter.
#[test]
fn a_partner_that_counts_past_the_number() {
    let model = Handover::there_and_back().to_one_ahead();
    assert_holds("a partner ahead of the clock", model);
}

/// Nothing of it is accepted afterwards. It is asked when it is to come back.
#[test]
fn the_first_service_counts_past_the_number() {
    let model = Handover::there_and_back().from_one_ahead();
    assert_holds("from one ahead of the clock", model);
}

#[test]
fn the_first_service_counts_past_the_number_and_comes_back_unasked() {
    let back = [ChangeIssuer, Choose, SealMark];
    let model = Handover::there_and_back().from_one_ahead();
    assert_breaks("back unasked", LATE, model.with_way_back(&back));
}

#[test]
fn the_number_is_chosen_before_the_issuer_changes() {
    let steps = [Probe, Choose, ChangeIssuer, SealMark];
    assert_breaks("chosen first", LATE, with(&steps));
}

#[test]
fn the_number_is_the_mark() {
    let steps = [Probe, ChangeIssuer, ChooseTheMark, SealMark];
    assert_breaks("the mark alone", LATE, with(&steps));
}

/// The clients of the first service have never stopped: on the way back they are early.
#[test]
fn the_number_is_the_mark_on_the_way_back() {
    let back = [Probe, ChangeIssuer, ChooseTheMark, SealMark];
    let model = Handover::there_and_back().with_way_back(&back);
    assert_breaks("the mark alone, back", LATE, model);
}

#[test]
fn the_way_back_changes_the_issuer_alone() {
    let model = Handover::there_and_back().with_way_back(&[Probe, ChangeIssuer]);
    assert_breaks("back without a seal", GETS_IN, model);
}

#[test]
fn a_partner_that_counts_past_the_number_is_accepted() {
    let steps = [ChangeIssuer, Choose, SealMark];
    assert_breaks("counts past it", LATE, with(&steps).to_one_ahead());
}

#[test]
fn who_is_refused_asks_for_no_number() {
    let model = Handover::there_and_back().with_lift(Lift::Anywhere);
    assert_breaks("no number", GETS_IN, model);
}

#[test]
fn the_issuer_stays() {
    let steps = [Probe, Choose, SealMark];
    assert_breaks("the issuer stays", GETS_IN, with(&steps));
}

#[test]
fn the_mark_is_not_sealed() {
    let steps = [Probe, ChangeIssuer, Choose];
    assert_breaks("not sealed", GETS_IN, with(&steps));
}

#[test]
fn the_seal_leaves_the_holder() {
    let steps = [Probe, ChangeIssuer, Choose, RaiseMark];
    assert_breaks("the holder stays", BOTH, with(&steps));
}

#[test]
fn the_mark_is_sealed_before_the_issuer_changes() {
    let steps = [Probe, Choose, SealMark, ChangeIssuer];
    assert_breaks("the mark first", GETS_IN, with(&steps));
}
