use models::{assert_breaks, assert_holds};

use super::{
    Handover, Lift,
    Step::{self, ChangeIssuer, Choose, ChooseTheMark, Probe, RaiseMark, SealMark},
};

const LATE: &str = "no late claim";
const BOTH: &str = "never both";
const GETS_IN: &str = "the latest gets in";

fn built() -> Handover {
    Handover::there_and_back()
}

fn with(steps: &[Step]) -> Handover {
    let (there, back) = (steps.to_vec(), steps.to_vec());
    Handover {
        there,
        back,
        ..built()
    }
}

fn with_way_back(steps: &[Step]) -> Handover {
    let back = steps.to_vec();
    Handover { back, ..built() }
}

/// A handover from a service that has counted past the clock.
fn from_one_ahead(model: Handover) -> Handover {
    let ahead = [3, 0];
    Handover { ahead, ..model }
}

/// A handover to a service that has counted past the clock.
fn to_one_ahead(model: Handover) -> Handover {
    let ahead = [0, 3];
    Handover { ahead, ..model }
}

/// A service that counts past the number is refused until the clock has reached its counter. No
/// token of a replaced service is accepted. That service is probed when it is to come back.
#[test]
fn holds() {
    assert_holds("as built", built());
    assert_holds("a partner ahead of the clock", to_one_ahead(built()));
    assert_holds("from one ahead of the clock", from_one_ahead(built()));
}

/// Catches: a step that the procedure does not need, or a model that does not notice that a step
/// is missing.
#[test]
fn every_step_is_needed_in_its_place() {
    let lift = Lift::Anywhere;
    for (name, property, model) in [
        (
            "chosen first",
            LATE,
            with(&[Probe, Choose, ChangeIssuer, SealMark]),
        ),
        (
            "the mark alone",
            LATE,
            with(&[Probe, ChangeIssuer, ChooseTheMark, SealMark]),
        ),
        // The clients of the first service have never stopped, so on the way back they claim too
        // early.
        (
            "the mark alone, back",
            LATE,
            with_way_back(&[Probe, ChangeIssuer, ChooseTheMark, SealMark]),
        ),
        (
            "back unasked",
            LATE,
            from_one_ahead(with_way_back(&[ChangeIssuer, Choose, SealMark])),
        ),
        (
            "counts past it",
            LATE,
            to_one_ahead(with(&[ChangeIssuer, Choose, SealMark])),
        ),
        (
            "back without a seal",
            GETS_IN,
            with_way_back(&[Probe, ChangeIssuer]),
        ),
        ("no number", GETS_IN, Handover { lift, ..built() }),
        (
            "the issuer stays",
            GETS_IN,
            with(&[Probe, Choose, SealMark]),
        ),
        ("not sealed", GETS_IN, with(&[Probe, ChangeIssuer, Choose])),
        (
            "the mark first",
            GETS_IN,
            with(&[Probe, Choose, SealMark, ChangeIssuer]),
        ),
        (
            "the holder stays",
            BOTH,
            with(&[Probe, ChangeIssuer, Choose, RaiseMark]),
        ),
    ] {
        assert_breaks(name, property, model);
    }
}
