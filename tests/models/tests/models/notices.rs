//! What a client of ZooKeeper concludes without a look; and every rule is needed.

use models::{
    checking::{assert_breaks, assert_holds},
    notices::{Flaw, Notices},
};

const FIRST: &str = "the first is granted";
const RISE: &str = "tokens rise";

#[test]
fn notices_as_built() {
    assert_holds("as built", Notices::as_built());
}

#[test]
fn notices_of_three() {
    assert_holds("of three", Notices::of_three());
}

#[test]
fn the_next_one_is_enough() {
    let model = Notices::of_three().with(Flaw::NextIsEnough);
    assert_breaks("next is enough", FIRST, model);
}

#[test]
fn the_answer_is_not_awaited() {
    let model = Notices::of_four().with(Flaw::AnswerIsNotAwaited);
    assert_breaks("answer not awaited", FIRST, model);
}

#[test]
fn the_answer_is_not_read() {
    let model = Notices::of_four().with(Flaw::AnswerIsNotRead);
    assert_breaks("answer not read", FIRST, model);
}

#[test]
fn force_deletes_the_node_first() {
    assert_breaks(
        "deletes first",
        RISE,
        Notices::as_built().with(Flaw::DeletesFirst),
    );
}

#[test]
fn a_notice_after_a_lost_connection_is_gone_by() {
    let model = Notices::as_built().with(Flaw::ConnectionIsForgotten);
    assert_breaks("connection forgotten", RISE, model);
}

#[test]
fn the_lock_directory_is_not_watched() {
    let model = Notices::as_built().with(Flaw::DirectoryIsNotWatched);
    assert_breaks("directory not watched", RISE, model);
}

#[test]
fn a_waiter_does_not_watch_its_own_node() {
    assert_breaks(
        "own not watched",
        FIRST,
        Notices::as_built().with(Flaw::OwnIsNotWatched),
    );
}

#[test]
fn the_number_outlives_the_directory() {
    let model = Notices::as_built().with(Flaw::NumberOutlivesDirectory);
    assert_breaks("number outlives", FIRST, model);
}

#[test]
fn the_number_is_not_compared() {
    let model = Notices::as_built().with(Flaw::NumberIsNotCompared);
    assert_breaks("number not compared", FIRST, model);
}
