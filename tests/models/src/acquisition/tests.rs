use models::{assert_holds, assert_needed};

use super::{Flaw, Machines, Waking::*};

const ONE: &str = "one holder";
const OWN: &str = "own lease only";
const LEFT: &str = "nothing is left";
const WAITER: &str = "no lost waiter";

#[test]
fn holds() {
    for waking in [Offers, Grants, Hints] {
        let holds = |name: &str, model| assert_holds(&format!("{waking:?}: {name}"), model);
        holds("look and wait", Machines::look_and_wait(waking, 0));
        holds("bounded", Machines::bounded(waking, 0));
        holds("look, a fault", Machines::look_and_wait(waking, 1).prompt());
    }
    assert_holds(
        "Grants: bounded, a fault",
        Machines::bounded(Grants, 1).prompt(),
    );
    assert_holds("no channel", Machines::bounded(Offers, 0).prompt().deaf());
}

#[test]
fn three_hold() {
    assert_holds("three", Machines::three(Grants, 0));
}

#[test]
fn every_rule_is_needed() {
    let (look, bounded) = (Machines::look_and_wait, Machines::bounded);
    assert_needed([
        (Flaw::HeldDespiteCopy, LEFT, look(Offers, 1)),
        (Flaw::UndoIncomplete, LEFT, look(Offers, 1)),
        (Flaw::NoTombstone, LEFT, bounded(Offers, 1)),
        (Flaw::LeavesSilently, LEFT, look(Offers, 0)),
        (Flaw::ErrorsBelieved, LEFT, look(Offers, 2)),
        (Flaw::CountedFromAnswer, ONE, bounded(Offers, 0)),
        (Flaw::OfferTaken, ONE, Machines::three(Offers, 0)),
        (Flaw::PushBelieved, ONE, Machines::three(Grants, 0)),
        (
            Flaw::LossReleased,
            "a lost lease is not released",
            look(Offers, 1),
        ),
        (Flaw::SilenceBorne, "no wait is late", look(Hints, 1)),
        (Flaw::NeverLooksAgain, WAITER, look(Offers, 0)),
        (Flaw::NobodyStirred, WAITER, look(Hints, 0)),
        (Flaw::CancelForgotten, LEFT, look(Offers, 1)),
        (Flaw::ReleaseNotCompared, OWN, bounded(Offers, 1)),
        (Flaw::ConfirmNotCompared, OWN, Machines::three(Offers, 0)),
        (Flaw::PlaceKept, LEFT, bounded(Offers, 0).deaf()),
        (Flaw::TokenRepeats, "tokens rise", bounded(Offers, 0)),
    ]);
}
