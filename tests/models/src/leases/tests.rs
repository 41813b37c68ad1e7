use models::{assert_holds, assert_needed};

use super::{Flaw, Leases};

const TOLD: &str = "for as long as it was told";
const NOBODY: &str = "no place of nobody";

#[test]
fn holds() {
    assert_holds("leases", Leases::as_built());
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (Flaw::TakenWithoutSlack, TOLD, Leases::as_built()),
        (Flaw::RevokedIsFree, TOLD, Leases::as_built()),
        (Flaw::TombstoneGoesFirst, NOBODY, Leases::as_built()),
        (Flaw::NoTombstone, NOBODY, Leases::as_built()),
        (Flaw::SentTwiceIsFree, NOBODY, Leases::as_built()),
    ]);
}
