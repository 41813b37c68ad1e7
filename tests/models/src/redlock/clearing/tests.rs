use models::{assert_holds, assert_needed};

use super::{Clearing, Flaw};

const DELETED: &str = "no new counter is deleted";
const SERVED: &str = "nothing old is served";

#[test]
fn holds() {
    assert_holds("two take a node in at once", Clearing::two_at_once());
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (
            Flaw::DeleteNamesNoClearing,
            DELETED,
            Clearing::two_at_once(),
        ),
        (Flaw::DeleteIsNotAwaited, SERVED, Clearing::two_at_once()),
    ]);
}
