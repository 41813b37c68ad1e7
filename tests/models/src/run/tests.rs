use models::{Flawed, assert_breaks_only, assert_holds};

use super::{Flaw, Run};

#[test]
fn holds() {
    assert_holds("run", Run::as_built());
    assert_holds("run in a terminal", Run::with_ctrl_z());
}

#[test]
fn every_rule_is_needed() {
    for (flaw, run) in [
        (Flaw::CountsUnconfirmed, Run::as_built()),
        (Flaw::OnlyTheDead, Run::as_built()),
        (Flaw::NoMargin, Run::as_built()),
        (Flaw::Alone, Run::as_built()),
        (Flaw::OneGoesOn, Run::with_ctrl_z()),
        (Flaw::ContinuesAtOnce, Run::with_ctrl_z()),
        (Flaw::ContinuesToEnd, Run::with_ctrl_z()),
        (Flaw::ReadsLate, Run::with_ctrl_z()),
    ] {
        let broken = "the command is dead or stopped when its lease ends";
        assert_breaks_only(&format!("{flaw:?}"), &[broken], run.with(flaw));
    }
}
