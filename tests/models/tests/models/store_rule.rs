//! What the store has to check: each row of the table in `docs/models.md`, with its verdicts.

use models::{
    checking::{assert_breaks_only, assert_holds},
    store::{Check, Floor, Read, Store},
};

const LOST: &str = "no lost update";
const LATE: &str = "no late write";
const OUT_OF_CLAIM_ORDER: &str = "claim order";
const LOCKED_OUT: &str = "the holder gets in";

/// What the rows after the sixth have in common.
fn claimed(acquisitions: usize) -> Store {
    Store::unfenced(acquisitions)
        .checking(Check::GreaterOrOwn)
        .claiming()
}

#[test]
fn nothing_is_fenced() {
    let store = Store::unfenced(2);
    assert_breaks_only("nothing is fenced", &[LOST, LATE], store);
}

#[test]
fn writes_are_checked_and_reads_are_not() {
    for check in [Check::NotLess, Check::GreaterOrOwn] {
        let store = Store::unfenced(2).checking(check);
        assert_breaks_only("reads are not checked", &[LOST, LATE], store);
    }
}

#[test]
fn reads_are_checked_and_leave_the_mark() {
    let store = Store::unfenced(2)
        .checking(Check::GreaterOrOwn)
        .reading(Read::Checked);
    assert_breaks_only("reads leave the mark", &[LOST, LATE], store);
}

#[test]
fn reads_advance_the_mark() {
    let store = Store::unfenced(2)
        .checking(Check::GreaterOrOwn)
        .reading(Read::Advancing);
    assert_breaks_only("reads advance the mark", &[LATE], store);
}

#[test]
fn a_claim_before_acquire_returns() {
    assert_holds("a claim", claimed(3));
}

#[test]
fn versions_without_a_claim() {
    let store = Store::unfenced(2)
        .checking(Check::GreaterOrOwn)
        .comparing_versions();
    assert_breaks_only("versions without a claim", &[LATE], store);
}

#[test]
fn failover_and_no_holder_in_the_mark() {
    let store = Store::unfenced(2)
        .checking(Check::NotLess)
        .claiming()
        .failing_over();
    let broken = [LOST, LATE, OUT_OF_CLAIM_ORDER, LOCKED_OUT];
    assert_breaks_only("failover, no holder", &broken, store);
}

#[test]
fn failover_with_two_primaries() {
    let store = claimed(3).splitting();
    assert_breaks_only("two primaries", &[LATE, LOCKED_OUT], store);
}

#[test]
fn failover_and_one_holder_id_for_a_process() {
    let store = claimed(3).splitting().sharing_the_holder();
    let broken = [LOST, LATE, OUT_OF_CLAIM_ORDER, LOCKED_OUT];
    assert_breaks_only("one holder id", &broken, store);
}

#[test]
fn failover_with_a_floor_for_the_holder() {
    let store = claimed(3).splitting().with_floor(Floor::IfHeld);
    assert_breaks_only("a floor for the holder", &[LATE], store);
}

#[test]
fn failover_with_a_floor_for_anyone() {
    let store = claimed(3).splitting().with_floor(Floor::Always).at_most(1);
    assert_breaks_only("a floor for anyone", &[LATE], store);
}

#[test]
fn failover_with_a_floor_and_the_earlier_read() {
    let store = claimed(2)
        .failing_over()
        .with_floor(Floor::IfHeld)
        .keeping_the_read();
    assert_breaks_only("the earlier read", &[LOST], store);
}

#[test]
fn a_late_write_of_the_holder_itself() {
    let store = claimed(2).delaying_writes();
    assert_breaks_only("its own late write", &[LOST], store);
}

#[test]
fn a_late_write_that_names_its_version() {
    let store = claimed(2).delaying_writes().comparing_versions();
    assert_holds("its own late write, told", store);
}

#[test]
fn a_late_write_and_a_failover() {
    let store = claimed(2).delaying_writes().comparing_versions();
    let store = store.splitting().with_floor(Floor::IfHeld);
    assert_holds("its own late write, told, and a failover", store);
}

/// The rule as it is built: nothing but a claim moves the mark, and a claim is not made again.
fn built() -> Store {
    Store::unfenced(3)
        .checking(Check::Claimed)
        .reading(Read::Checked)
        .claiming()
}

#[test]
fn the_rule_as_built() {
    assert_holds("as built", built());
    let late = built().delaying_writes();
    assert_breaks_only("as built, its own late write", &[LOST], late.clone());
    assert_holds("as built, and versions", late.comparing_versions());
}

#[test]
fn the_rule_as_built_and_a_failover() {
    let store = built().splitting().with_floor(Floor::IfHeld);
    assert_breaks_only("as built, two primaries", &[LATE], store);
}
