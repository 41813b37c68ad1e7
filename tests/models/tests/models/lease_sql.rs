//! Leases of PostgreSQL: one holder, tokens that rise, nobody who waits for ever; and every rule is
//! needed.

use models::{
    checking::{assert_breaks, assert_holds},
    lease_sql::{Flaw, LeaseSql},
};

const ONE: &str = "one holder";
const RISE: &str = "tokens rise";
const GHOST: &str = "no ghost";
const SERVED: &str = "who waits is served";

#[test]
fn late_requests() {
    assert_holds("late requests", LeaseSql::late_requests());
}

#[test]
fn three_who_wait() {
    assert_holds("three wait", LeaseSql::three_wait());
}

#[test]
fn a_server_that_crashes() {
    assert_holds("crash", LeaseSql::crash());
}

#[test]
fn a_standby_that_is_promoted() {
    assert_holds("promotion", LeaseSql::promotion());
}

#[test]
fn a_look_before_the_mutex() {
    let flawed = LeaseSql::three_wait().with(Flaw::OldSnapshot);
    assert_breaks("an old snapshot", ONE, flawed);
}

#[test]
fn a_release_leaves_no_tombstone() {
    let flawed = LeaseSql::late_requests().with(Flaw::NoTombstone);
    assert_breaks("no tombstone", GHOST, flawed);
}

#[test]
fn a_tombstone_goes_before_not_after() {
    let flawed = LeaseSql::late_requests().with(Flaw::TombstoneGoesFirst);
    assert_breaks("the tombstone goes first", GHOST, flawed);
}

#[test]
fn a_grant_is_not_flushed() {
    let flawed = LeaseSql::crash().with(Flaw::GrantNotFlushed);
    assert_breaks("a grant is not flushed", ONE, flawed);
}

#[test]
fn a_renewal_is_not_flushed() {
    let flawed = LeaseSql::crash().with(Flaw::RenewalNotFlushed);
    assert_breaks("a renewal is not flushed", ONE, flawed);
}

#[test]
fn tokens_are_only_counted() {
    let flawed = LeaseSql::promotion().with(Flaw::OnlyCounter);
    assert_breaks("tokens are only counted", RISE, flawed);
}

#[test]
fn a_renewal_revives_a_lease() {
    let flawed = LeaseSql::late_requests().with(Flaw::RenewalRevives);
    assert_breaks(
        "a renewal revives",
        "a lease that ran out has ended",
        flawed,
    );
}

#[test]
fn a_row_is_deleted_without_a_floor() {
    let flawed = LeaseSql::late_requests().with(Flaw::RowDeleted);
    assert_breaks("a row is deleted", RISE, flawed);
}

#[test]
fn a_waiter_is_passed_over() {
    let flawed = LeaseSql::three_wait().with(Flaw::OutOfTurn);
    assert_breaks("out of turn", "in turn", flawed);
}

#[test]
fn a_lost_notice_without_looks() {
    let flawed = LeaseSql::three_wait().with(Flaw::NoLooks);
    assert_breaks("no looks", SERVED, flawed);
}
