//! What a client of ZooKeeper concludes without a look; and every rule is needed.
#![forbid(unsafe_code)]

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
fn force_deletes_the_node_first() {
    assert_breaks("deletes first", RISE, Notices::with(Flaw::DeletesFirst));
}

#[test]
fn a_notice_after_a_lost_connection_is_gone_by() {
    let model = Notices::with(Flaw::ConnectionIsForgotten);
    assert_breaks("connection forgotten", RISE, model);
}

#[test]
fn the_lock_directory_is_not_watched() {
    let model = Notices::with(Flaw::DirectoryIsNotWatched);
    assert_breaks("directory not watched", RISE, model);
}

#[test]
fn a_waiter_does_not_watch_its_own_node() {
    assert_breaks(
        "own not watched",
        FIRST,
        Notices::with(Flaw::OwnIsNotWatched),
    );
}

#[test]
fn the_number_outlives_the_directory() {
    let model = Notices::with(Flaw::NumberOutlivesDirectory);
    assert_breaks("number outlives", FIRST, model);
}

#[test]
fn the_number_is_not_compared() {
    let model = Notices::with(Flaw::NumberIsNotCompared);
    assert_breaks("number not compared", FIRST, model);
}
