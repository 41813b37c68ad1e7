use models::{assert_holds, assert_needed};

use super::{Flaw, LeaseSql};

const ONE: &str = "one holder";
const RISE: &str = "tokens rise";
const GHOST: &str = "no ghost";
const ORDER: &str = "nothing older is committed after a claim";
const OVER: &str = "a lease that ran out has ended";

#[test]
fn holds() {
    assert_holds("late requests", LeaseSql::late_requests());
    assert_holds("three wait", LeaseSql::three_wait());
    assert_holds("some idle", LeaseSql::some_idle());
    assert_holds("crash", LeaseSql::crash());
    assert_holds("promotion", LeaseSql::promotion());
    assert_holds("transactions", LeaseSql::transactions());
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (Flaw::ClaimPasses, ORDER, LeaseSql::transactions()),
        (Flaw::OldSnapshot, ONE, LeaseSql::three_wait()),
        (Flaw::NoTombstone, GHOST, LeaseSql::late_requests()),
        (Flaw::TombstoneGoesFirst, GHOST, LeaseSql::late_requests()),
        (Flaw::GrantNotFlushed, ONE, LeaseSql::crash()),
        (Flaw::RenewalNotFlushed, ONE, LeaseSql::crash()),
        (Flaw::OnlyCounter, RISE, LeaseSql::promotion()),
        (Flaw::RenewalRevives, OVER, LeaseSql::late_requests()),
        (Flaw::RowDeleted, RISE, LeaseSql::late_requests()),
        (Flaw::OutOfTurn, "in turn", LeaseSql::three_wait()),
        (Flaw::NoLooks, "who waits is served", LeaseSql::three_wait()),
        (
            Flaw::IdleStaysFirst,
            "who waits is served",
            LeaseSql::some_idle(),
        ),
    ]);
}
