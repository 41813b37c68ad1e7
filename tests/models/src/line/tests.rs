use models::{assert_holds, assert_needed};

use super::{Flaw, Line};

const OWN: &str = "its own floor";
const ENDED: &str = "no lease that ran out";
const KEPT: &str = "a place is kept";

#[test]
fn holds() {
    assert_holds("line", Line::as_built());
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (Flaw::TheFirstIsBoundToo, KEPT, Line::as_built()),
        (Flaw::WhatIsFoundWasTold, OWN, Line::as_built()),
        (Flaw::OthersKeepThePlace, OWN, Line::as_built()),
        (
            Flaw::WhatIsGoneHasEnded,
            "no refusal for nothing",
            Line::as_built(),
        ),
        (Flaw::WhoJoinsBindsNothing, OWN, Line::as_built()),
        (Flaw::WhatWasHeardCounts, ENDED, Line::as_built()),
        (Flaw::WhoHasNoPlaceIsToldToo, ENDED, Line::as_built()),
    ]);
}
