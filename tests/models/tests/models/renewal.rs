//! When a lease ends that is renewed for times of several lengths; and every rule is needed.

use models::{
    checking::{assert_breaks_only, assert_holds},
    renewal::{Flaw, Renewal},
};

const RELIED_ON: &str = "nobody relies on what has ended";
const MENDED: &str = "a renewal mends";

#[test]
fn renewals_as_built() {
    assert_holds("as built", Renewal::as_built());
}

#[test]
fn a_renewal_sets_the_end_anew() {
    let model = Renewal::as_built().with(Flaw::SetsTheEndAnew);
    assert_breaks_only("sets the end anew", &[RELIED_ON], model);
}

#[test]
fn a_renewal_only_makes_it_later() {
    let model = Renewal::as_built().with(Flaw::OnlyLater);
    assert_breaks_only("only later", &[MENDED], model);
}

#[test]
fn the_last_length_is_kept() {
    let model = Renewal::as_built().with(Flaw::KeepsTheLast);
    assert_breaks_only("keeps the last", &[RELIED_ON], model);
}
