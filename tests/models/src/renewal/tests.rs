use models::{Flawed, assert_breaks_only, assert_holds};

use super::{Flaw, Renewal};

#[test]
fn holds() {
    assert_holds("renewals", Renewal::as_built());
}

#[test]
fn every_rule_is_needed() {
    const RELIED_ON: &str = "no holder relies on a lease that has ended";
    const MENDED: &str = "a renewal mends";
    for (flaw, property) in [
        (Flaw::SetsTheEndAnew, RELIED_ON),
        (Flaw::OnlyLater, MENDED),
        (Flaw::KeepsTheLast, RELIED_ON),
    ] {
        let model = Renewal::as_built().with(flaw);
        assert_breaks_only(&format!("{flaw:?}"), &[property], model);
    }
}
