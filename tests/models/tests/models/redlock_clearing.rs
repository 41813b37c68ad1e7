//! Taking in a node of a Redlock deletes nothing of its new incarnation; and every rule is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    redlock::clearing::{Clearing, Flaw},
};

#[test]
fn two_take_a_node_in_at_once() {
    assert_holds("two take a node in at once", Clearing::two_at_once());
}

#[test]
fn a_delete_names_no_clearing() {
    let clearing = Clearing::two_at_once().with(Flaw::DeleteNamesNoClearing);
    let property = "no new counter is deleted";
    assert_breaks("a delete names no clearing", property, clearing);
}

#[test]
fn a_delete_is_not_awaited() {
    let clearing = Clearing::two_at_once().with(Flaw::DeleteIsNotAwaited);
    assert_breaks("a delete is not awaited", "nothing old is served", clearing);
}
