//! Every rule of the queue is needed: without it, something breaks.

use models::{
    checking::{assert_breaks, assert_holds},
    queue::{Flaw, Queue},
};

#[test]
fn no_tombstone() {
    let queue = Queue::duel().with(Flaw::NoTombstone);
    assert_breaks("no tombstone", "no ghost", queue);
}

#[test]
fn killing_the_old_connection_does_for_a_tombstone() {
    let queue = Queue::duel()
        .with(Flaw::NoTombstone)
        .killing_old_connections();
    assert_holds("no tombstone, but a killed connection", queue);
}

#[test]
fn no_tombstone_although_an_acquire_may_be_late() {
    let queue = Queue::duel().with(Flaw::NoTombstoneOfLate);
    assert_breaks("no tombstone of what may be late", "no ghost", queue);
}

#[test]
fn no_tombstone_although_another_attempt_has_the_acquisition() {
    let queue = Queue::two_gateways().with(Flaw::NoTombstoneOfShared);
    assert_breaks("no tombstone of what is shared", "one token", queue);
}

#[test]
fn cancel_in_two_steps() {
    let queue = Queue::duel().with(Flaw::CancelInTwoSteps);
    assert_breaks("cancel in two steps", "no ghost", queue);
}

#[test]
fn cancel_ignores_attempts() {
    let queue = Queue::two_gateways().with(Flaw::CancelIgnoresAttempts);
    assert_breaks("cancel ignores attempts", "cancel is per attempt", queue);
}

#[test]
fn only_the_latest_attempt_is_remembered() {
    let queue = Queue::two_gateways().with(Flaw::OnlyLatestAttempt);
    assert_breaks("only the latest attempt", "cancel is per attempt", queue);
}

#[test]
fn replay_extends() {
    let queue = Queue::duel().with(Flaw::ReplayExtends);
    assert_breaks("replay extends", "replay is inert", queue);
}

#[test]
fn replay_increments() {
    let queue = Queue::two_gateways().with(Flaw::ReplayIncrements);
    assert_breaks("replay increments", "one token", queue);
}

#[test]
fn grants_to_the_caller() {
    let queue = Queue::line().with(Flaw::GrantsToCaller);
    assert_breaks("grants to the caller", "fifo", queue);
}

#[test]
fn a_push_is_a_full_lease() {
    let queue = Queue::pause().with(Flaw::PushIsFull);
    assert_breaks("a push is a full lease", "a pause is cheap", queue);
}

#[test]
fn the_entry_leaves_when_it_is_granted() {
    let queue = Queue::pause().with(Flaw::EntryLeavesAtGrant);
    assert_breaks("the entry leaves at the grant", "a pause is cheap", queue);
}

#[test]
fn a_poll_clears_before_it_settles() {
    let queue = Queue::pause().with(Flaw::PollClearsTooEarly);
    assert_breaks("a poll clears too early", "fifo", queue);
}

#[test]
fn the_caller_is_not_exempt() {
    let queue = Queue::cut_off().with(Flaw::CallerIsNotExempt);
    assert_breaks("the caller is not exempt", "a poll is enough", queue);
}

#[test]
fn a_confirm_draws_the_token() {
    let queue = Queue::pause().with(Flaw::ConfirmIncrements);
    assert_breaks("a confirm draws the token", "unique", queue);
}

#[test]
fn a_release_is_not_compared() {
    let queue = Queue::duel().with(Flaw::ReleaseIsNotCompared);
    assert_breaks("a release is not compared", "exclusion", queue);
}

#[test]
fn expiry_is_forgotten() {
    let queue = Queue::two_gateways().with(Flaw::ExpiryIsForgotten);
    assert_breaks("expiry is forgotten", "one token", queue);
}

#[test]
fn a_waiter_is_registered_too_late() {
    let queue = Queue::duel().with(Flaw::RegistersLate);
    assert_breaks("registered too late", "no refusal for nothing", queue);
}

#[test]
fn an_unknown_push_is_released_by_its_token() {
    let queue = Queue::two_gateways().with(Flaw::UnknownPushIsReleased);
    assert_breaks(
        "an unknown push is released",
        "cancel is per attempt",
        queue,
    );
}

#[test]
fn a_push_goes_to_any_attempt_of_its_holder() {
    let queue = Queue::second_attempt().with(Flaw::PushMatchesHolder);
    assert_breaks("a push matches the holder", "order", queue);
}

#[test]
fn a_late_push_cancels_what_its_attempt_holds() {
    let queue = Queue::duel().with(Flaw::LatePushCancels);
    assert_breaks("a late push cancels", "no loss for nothing", queue);
}

#[test]
fn an_unconfirmed_lease_is_forgotten_where_pushes_look() {
    let queue = Queue::duel().with(Flaw::UnconfirmedIsForgotten);
    assert_breaks("unconfirmed is forgotten", "no loss for nothing", queue);
}

#[test]
fn a_waiter_never_polls() {
    let queue = Queue::duel().with(Flaw::NeverPolls);
    assert_breaks("a waiter never polls", "no lost waiter", queue);
}

#[test]
fn a_detached_acquire_returns_before_its_confirm() {
    let queue = Queue::two_gateways().with(Flaw::DetachedReturnsEarly);
    assert_breaks("returns before its confirm", "one token", queue);
}

#[test]
fn a_loss_is_not_cancelled() {
    let queue = Queue::duel().with(Flaw::LossIsNotCancelled);
    assert_breaks("a loss is not cancelled", "no ghost", queue);
}
