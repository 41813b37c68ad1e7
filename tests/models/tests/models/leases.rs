//! A lease that is used again serves each of its holders for as long as they were told, and a late
//! copy of an entry gets nothing on it; and every rule is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    leases::{Flaw, Leases},
};

const TOLD: &str = "for as long as it was told";
const NOBODY: &str = "no place of nobody";

#[test]
fn leases_as_built() {
    assert_holds("as built", Leases::as_built());
}

#[test]
fn a_lease_is_taken_without_slack() {
    let flawed = Leases::as_built().with(Flaw::TakenWithoutSlack);
    assert_breaks("without slack", TOLD, flawed);
}

#[test]
fn a_lease_that_is_about_to_be_revoked_is_free() {
    let flawed = Leases::as_built().with(Flaw::RevokedIsFree);
    assert_breaks("revoked is free", TOLD, flawed);
}

#[test]
fn a_tombstone_goes_before_the_lease() {
    let flawed = Leases::as_built().with(Flaw::TombstoneGoesFirst);
    assert_breaks("the tombstone goes first", NOBODY, flawed);
}

#[test]
fn what_was_released_leaves_no_tombstone() {
    let flawed = Leases::as_built().with(Flaw::NoTombstone);
    assert_breaks("no tombstone", NOBODY, flawed);
}

#[test]
fn a_lease_is_free_although_its_entry_was_sent_twice() {
    let flawed = Leases::as_built().with(Flaw::SentTwiceIsFree);
    assert_breaks("sent twice is free", NOBODY, flawed);
}
