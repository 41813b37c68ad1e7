use models::{assert_holds, assert_needed};

use super::{Flaw, Notices};

const FIRST: &str = "the first is granted";
const RISE: &str = "tokens rise";

#[test]
fn holds() {
    assert_holds("notices", Notices::as_built());
    assert_holds("of three", Notices::of_three());
}

#[test]
fn every_rule_is_needed() {
    assert_needed([
        (Flaw::NextIsEnough, FIRST, Notices::of_three()),
        (Flaw::AnswerIsNotAwaited, FIRST, Notices::of_four()),
        (Flaw::AnswerIsNotRead, FIRST, Notices::of_four()),
        (Flaw::DeletesFirst, RISE, Notices::as_built()),
        (Flaw::ConnectionIsForgotten, RISE, Notices::as_built()),
        (Flaw::DirectoryIsNotWatched, RISE, Notices::as_built()),
        (Flaw::OwnIsNotWatched, FIRST, Notices::as_built()),
        (Flaw::NumberOutlivesDirectory, FIRST, Notices::as_built()),
        (Flaw::NumberIsNotCompared, FIRST, Notices::as_built()),
    ]);
}
