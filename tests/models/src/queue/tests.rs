use models::{Flawed, assert_holds, assert_needed};

use super::{Flaw, Queue};

#[test]
fn holds() {
    assert_holds("duel", Queue::duel());
    assert_holds("pause", Queue::pause());
    assert_holds("cut off", Queue::cut_off());
    assert_holds("line", Queue::line());
    assert_holds("two gateways", Queue::two_gateways());
    assert_holds("second attempt", Queue::second_attempt());
}

#[test]
fn every_rule_is_needed() {
    const GHOST: &str = "no ghost";
    const ONE: &str = "one token";
    const PER_ATTEMPT: &str = "cancel is per attempt";
    const CHEAP: &str = "a pause is cheap";
    const LOSS: &str = "no loss for nothing";
    assert_needed([
        (Flaw::NoTombstone, GHOST, Queue::duel()),
        (Flaw::NoTombstoneOfLate, GHOST, Queue::duel()),
        (Flaw::NoTombstoneOfShared, ONE, Queue::two_gateways()),
        (
            Flaw::CancelIgnoresAttempts,
            PER_ATTEMPT,
            Queue::two_gateways(),
        ),
        (Flaw::OnlyLatestAttempt, PER_ATTEMPT, Queue::two_gateways()),
        (Flaw::ReplayExtends, "replay is inert", Queue::duel()),
        (Flaw::ReplayIncrements, ONE, Queue::two_gateways()),
        (Flaw::GrantsToCaller, "fifo", Queue::line()),
        (Flaw::PushIsFull, CHEAP, Queue::pause()),
        (Flaw::EntryLeavesAtGrant, CHEAP, Queue::pause()),
        (Flaw::PollClearsTooEarly, "fifo", Queue::pause()),
        (
            Flaw::CallerIsNotExempt,
            "a poll is enough",
            Queue::cut_off(),
        ),
        (Flaw::ConfirmIncrements, "unique", Queue::pause()),
        (Flaw::ReleaseIsNotCompared, "exclusion", Queue::duel()),
        (Flaw::ExpiryIsForgotten, ONE, Queue::two_gateways()),
        (Flaw::RegistersLate, "no refusal for nothing", Queue::duel()),
        (
            Flaw::UnknownPushIsReleased,
            PER_ATTEMPT,
            Queue::two_gateways(),
        ),
        (Flaw::PushMatchesHolder, "order", Queue::second_attempt()),
        (Flaw::LatePushCancels, LOSS, Queue::duel()),
        (Flaw::UnconfirmedIsForgotten, LOSS, Queue::duel()),
        (Flaw::NeverPolls, "no lost waiter", Queue::duel()),
        (Flaw::DetachedReturnsEarly, ONE, Queue::two_gateways()),
        (Flaw::LossIsNotCancelled, GHOST, Queue::duel()),
    ]);
}

/// Catches: a tombstone that would be needed even by clients which kill their connection.
#[test]
fn killing_the_old_connection_does_for_a_tombstone() {
    let mut queue = Queue::duel().with(Flaw::NoTombstone);
    queue.kills = true;
    assert_holds("no tombstone, but a killed connection", queue);
}
