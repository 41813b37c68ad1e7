use models::{assert_holds, assert_needed};

use super::{Flaw, Leases};

const TOLD: &str = "for as long as promised";
const LEFT: &str = "no place is left";

#[test]
fn holds() {
    assert_holds("leases", Leases::as_built());
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (Flaw::TakenWithoutSlack, TOLD, Leases::as_built()),
        (Flaw::RevokedIsFree, TOLD, Leases::as_built()),
        (Flaw::TombstoneGoesFirst, LEFT, Leases::as_built()),
        (Flaw::NoTombstone, LEFT, Leases::as_built()),
        (Flaw::SentTwiceIsFree, LEFT, Leases::as_built()),
    ]);
}
