use models::{assert_holds, assert_needed};

use super::{Flaw, Machines, May, Waking::*};

const ONE: &str = "one holder";
const OWN: &str = "own lease only";
const LEFT: &str = "nothing is left";
const WAITER: &str = "no lost waiter";
const TOKEN: &str = "one token";
const LOSS: &str = "no loss for nothing";
const RISE: &str = "tokens rise";
const TURN: &str = "in turn";
const CHEAP: &str = "a pause is cheap";

const LEAVE: &[May] = &[May::Leave, May::RunLate];
const LATE: &[May] = &[May::Leave, May::RunLate, May::AnswerLate];

#[test]
fn two_hold() {
    for waking in [Offers, Grants, Hints] {
        let holds = |name: &str, model| assert_holds(&format!("{waking:?}: {name}"), model);
        holds(
            "look and wait",
            Machines::look_and_wait(waking, 0).that(LATE),
        );
        holds("bounded", Machines::bounded(waking, 0).that(LATE));
        holds(
            "look, a fault",
            Machines::look_and_wait(waking, 1).that(LEAVE),
        );
        holds(
            "siblings, a fault",
            Machines::siblings(waking, 1).that(LATE),
        );
    }
    let bounded = Machines::bounded(Grants, 1).that(LEAVE);
    assert_holds("Grants: bounded, a fault", bounded);
}

/// Catches: a promise that two callers keep and three do not.
#[test]
fn three_hold() {
    for waking in [Offers, Grants, Hints] {
        let holds = |name: &str, model| assert_holds(&format!("{waking:?}: {name}"), model);
        holds("three, a fault", Machines::three(waking, 1));
        let leave = &[May::Leave];
        holds("three leave", Machines::three(waking, 0).that(leave));
    }
}

/// Catches: a script of Redis that relies on a process which is paused, cut off or late.
#[test]
fn redis_holds() {
    let late = &[May::PushLate, May::Leave];
    let deaf = &[May::BeDeaf, May::RunLate];
    assert_holds("late pushes", Machines::look_and_wait(Offers, 1).that(late));
    assert_holds("rival, late pushes", Machines::rival(Offers, 0).that(late));
    assert_holds("paused", Machines::paused());
    assert_holds("cut", Machines::cut());
    assert_holds("one process, a fault", Machines::one_process(1).that(late));
    assert_holds("dead", Machines::three(Offers, 0).that(&[May::Die]));
    assert_holds("no channel", Machines::bounded(Offers, 1).that(deaf));
}

/// Catches: a database that answers before its flush, or a store that accepts an older token.
#[test]
fn a_database_with_accidents_holds() {
    let two = |faults| Machines::look_and_wait(Hints, faults);
    let three = |faults| Machines::three(Hints, faults);
    let crash = &[May::Crash, May::Renew, May::RunLate];
    let transact = &[May::Crash, May::Transact, May::RunLate];
    assert_holds("crash, a fault", two(1).that(crash));
    assert_holds("promotion", three(0).that(&[May::Promote, May::Renew]));
    assert_holds("transactions", two(0).that(transact));
    assert_holds("idle, a fault", three(1).that(&[May::Idle, May::Die]));
}

#[test]
fn every_rule_of_the_machine_is_needed() {
    let look = |waking, faults| Machines::look_and_wait(waking, faults).that(LEAVE);
    let bounded = |waking, faults| Machines::bounded(waking, faults).that(LATE);
    let three = Machines::three;
    let lost = "a lost lease is not released";
    assert_needed([
        (Flaw::HeldDespiteCopy, LEFT, look(Offers, 1)),
        (Flaw::UndoIncomplete, LEFT, look(Offers, 1).that(LATE)),
        (Flaw::NoTombstone, LEFT, bounded(Offers, 1)),
        (Flaw::NoTombstone, TOKEN, Machines::siblings(Hints, 0)),
        (Flaw::LeavesSilently, LEFT, look(Offers, 0)),
        (Flaw::ErrorsBelieved, LEFT, look(Offers, 2)),
        (Flaw::CountedFromAnswer, ONE, bounded(Offers, 0)),
        (Flaw::OfferTaken, ONE, three(Offers, 0)),
        (Flaw::PushBelieved, ONE, three(Grants, 0)),
        (Flaw::LossReleased, lost, look(Offers, 1)),
        (Flaw::SilenceBorne, "no wait is late", look(Hints, 1)),
        (Flaw::NeverLooksAgain, WAITER, look(Offers, 0)),
        (Flaw::NoneStirred, WAITER, look(Hints, 0)),
    ]);
}

#[test]
fn every_rule_of_a_server_is_needed() {
    let look = |waking, faults| Machines::look_and_wait(waking, faults).that(LEAVE);
    let siblings = |waking| Machines::siblings(waking, 1).that(LEAVE);
    let three = Machines::three;
    assert_needed([
        (Flaw::CancelForgotten, LEFT, look(Offers, 1)),
        (Flaw::CancelIgnoresAttempts, LOSS, siblings(Offers)),
        (Flaw::OnlyLatestAttempt, LOSS, siblings(Offers)),
        (Flaw::ReleaseNotCompared, OWN, look(Offers, 1)),
        (Flaw::ConfirmNotCompared, OWN, three(Offers, 1)),
        (
            Flaw::PlaceKept,
            LEFT,
            Machines::bounded(Offers, 0).that(&[May::BeDeaf, May::RunLate]),
        ),
        (Flaw::TokenRepeats, RISE, look(Offers, 0)),
        (Flaw::ReplayExtends, "replay is inert", look(Offers, 0)),
        (Flaw::ReplayIncrements, TOKEN, siblings(Offers)),
        (Flaw::ExpiryForgotten, TOKEN, siblings(Offers)),
        (Flaw::OutOfTurn, TURN, three(Offers, 0)),
        (Flaw::OutOfTurn, TURN, three(Hints, 0)),
    ]);
}

#[test]
fn every_rule_of_redis_is_needed() {
    let late = || Machines::look_and_wait(Offers, 0).that(&[May::PushLate]);
    let rival = || Machines::rival(Offers, 0).that(&[May::PushLate, May::Leave]);
    let look = || Machines::look_and_wait(Offers, 1).that(LEAVE);
    let one_process = || Machines::cut().that(&[May::PushLate, May::Leave]);
    assert_needed([
        (Flaw::RegistersLate, "no refusal for nothing", late()),
        (Flaw::LatePushCancels, LOSS, late()),
        (Flaw::LatePushReleases, LOSS, rival()),
        (Flaw::PushMatchesAcquisition, LOSS, rival()),
        (Flaw::PushIsFull, CHEAP, Machines::paused()),
        (Flaw::PlaceLeavesAtOffer, CHEAP, Machines::paused()),
        (Flaw::LookClearsTooEarly, TURN, Machines::paused()),
        (Flaw::CallerNotExempt, "a poll is enough", Machines::cut()),
        (Flaw::HandedKeepsPlace, LEFT, one_process()),
        (Flaw::HandedTwice, ONE, one_process()),
        (Flaw::NeverVacant, LEFT, look()),
        (Flaw::AlwaysAlone, TURN, Machines::three(Offers, 0)),
    ]);
}

#[test]
fn every_rule_of_a_database_is_needed() {
    let look = |may| Machines::look_and_wait(Hints, 0).that(may);
    let crash = || look(&[May::Crash, May::Renew]);
    let transact = || look(&[May::Transact]);
    let idle = || Machines::three(Hints, 0).that(&[May::Idle]);
    let claim = "nothing older after a claim";
    assert_needed([
        (Flaw::OldSnapshot, ONE, look(&[])),
        (Flaw::TombstoneGoesFirst, LEFT, look(LEAVE)),
        (Flaw::GrantNotFlushed, ONE, crash()),
        (Flaw::RenewalNotFlushed, ONE, crash()),
        (Flaw::OnlyCounter, RISE, look(&[May::Promote])),
        (
            Flaw::RenewalRevives,
            "a lease that ran out has ended",
            crash(),
        ),
        (Flaw::RowDeleted, RISE, transact()),
        (Flaw::IdleStaysFirst, WAITER, idle()),
        (Flaw::QuietDespiteWaiter, TURN, Machines::three(Hints, 0)),
        (Flaw::QuietDespiteTombstone, LEFT, look(LEAVE)),
        (Flaw::ClaimPasses, claim, transact()),
    ]);
}
