use models::{Flawed, assert_breaks_only, assert_holds};

use super::{Flaw, Run};

#[test]
fn holds() {
    assert_holds("run", Run::as_built());
}

#[test]
fn every_rule_is_needed() {
    for flaw in [
        Flaw::CountsUnconfirmed,
        Flaw::OnlyTheDead,
        Flaw::NoMargin,
        Flaw::Alone,
    ] {
        let broken = "the command is dead when its lease ends";
        assert_breaks_only(&format!("{flaw:?}"), &[broken], Run::as_built().with(flaw));
    }
}
