//! An event on the left, the step that follows on the right.

use super::{state::Phase, *};
use crate::{FencingToken, Jitter, Lease, RetryPolicy};

const fn at(millis: u64) -> Moment {
    Moment::from_origin(Duration::from_millis(millis))
}

const TTL: Ttl = Ttl::secs(30);
const END: Wait = Wait::Until(at(5_000));

fn attempt(wait: Wait) -> Acquisition {
    shared(Sharing::Alone, wait)
}

fn shared(sharing: Sharing, wait: Wait) -> Acquisition {
    Acquisition::new(Terms {
        late_grants: Some(0),
        ..Terms::new(sharing, TTL).waiting(wait)
    })
}

/// A lease that ends at 30 s.
fn grant() -> Grant {
    grant_at(0)
}

fn grant_at(millis: u64) -> Grant {
    Grant::new(
        FencingToken::MIN,
        Lease::counted_from(at(millis), TTL.get()),
    )
}

const fn replied(reply: Reply) -> Event {
    let copied = false;
    Event::Replied { reply, copied }
}

const fn failed(outcome: Outcome) -> Event {
    let kind = ErrorKind::Unavailable;
    replied(Reply::Failed(Failure { kind, outcome }))
}

const LEFT: Duration = Duration::from_secs(3);
const QUEUED: Event = replied(Reply::Queued {
    left: LEFT,
    look_again: Duration::from_secs(1),
});
const HELD: Event = replied(Reply::Held { left: LEFT });
const GONE: Event = replied(Reply::Gone);
const CANCELLED: Event = replied(Reply::Cancelled);
const NOT_HOLDER: Event = replied(Reply::Released(Released::NotHolder));
const STARTED: Event = Event::Started { hears: true };
const WOKEN: Event = Event::Woken(Wake::Look);

const TOLD_HELD: Step = Step::Answer(Answer::Held { left: LEFT });
const LOOK: Option<Request> = Some(Request::Look { queue: true });
const LOOK_ONCE: Option<Request> = Some(Request::Look { queue: false });
const CANCEL: Option<Request> = Some(Request::Cancel);

fn granted() -> Event {
    replied(Reply::Granted(grant()))
}

fn sends(step: Step) -> Option<Request> {
    match step {
        Step::Send { request, .. } => Some(request),
        _ => None,
    }
}

fn until(step: Step) -> Moment {
    match step {
        Step::Send { until, .. } | Step::Wait { until } => until,
        Step::Answer(answer) => panic!("{answer:?}"),
    }
}

#[test]
fn a_free_lease_is_granted_at_once_and_owes_a_release() {
    let mut it = attempt(Wait::Never);
    assert_eq!(sends(it.on(STARTED, at(0))), LOOK_ONCE);
    assert_eq!(
        it.on(granted(), at(1)),
        Step::Answer(Answer::Granted(grant()))
    );
    assert!(it.owes() && it.needs_no_tombstone());
    let release = Some(Request::Release { tombstone: false });
    assert_eq!(sends(it.on(Event::Release { held: true }, at(9))), release);
    let answer = it.on(replied(Reply::Released(Released::Released)), at(10));
    assert_eq!(answer, Step::Answer(Answer::Released(Released::Released)));
    assert!(!it.owes());
}

/// Catches: a copy of a request that arrives after `Held` gets a lease that no caller knows of.
#[test]
fn held_is_answered_only_when_no_copy_can_arrive() {
    for (first, copied, cancels) in [
        (Some(Outcome::NotApplied), false, false),
        (Some(Outcome::Unknown), false, true),
        (None, true, true),
        (None, false, false),
    ] {
        let mut it = attempt(Wait::Never);
        it.on(STARTED, at(0));
        if let Some(outcome) = first {
            assert_eq!(sends(it.on(failed(outcome), at(1))), LOOK_ONCE);
        }
        let reply = Reply::Held { left: LEFT };
        let step = it.on(Event::Replied { reply, copied }, at(2));
        if cancels {
            assert_eq!(sends(step), CANCEL);
            assert_eq!(it.on(CANCELLED, at(3)), TOLD_HELD);
        } else {
            assert_eq!(step, TOLD_HELD);
        }
        assert!(!it.owes());
    }
}

/// Catches: the answer `Held` although the attempt may still get the lease.
#[test]
fn an_attempt_whose_cancel_failed_is_not_answered_held() {
    let mut it = attempt(Wait::Never);
    it.on(STARTED, at(0));
    it.on(failed(Outcome::Unknown), at(1));
    it.on(HELD, at(2));
    let step = it.on(failed(Outcome::NotApplied), at(3));
    assert_eq!(step, Step::Answer(Answer::Failed(SILENT)));
    assert!(it.owes());
}

#[test]
fn an_attempt_rests_looks_and_leaves() {
    let mut it = attempt(END);
    assert_eq!(sends(it.on(STARTED, at(0))), LOOK);
    // A wake-up that arrives before the answer is not lost.
    assert!(matches!(it.on(WOKEN, at(1)), Step::Wait { .. }));
    assert_eq!(sends(it.on(QUEUED, at(2))), LOOK);
    assert_eq!(it.on(QUEUED, at(3)), Step::Wait { until: at(1_003) });
    assert_eq!(it.on(Event::Due, at(9)), Step::Wait { until: at(1_003) });
    assert_eq!(sends(it.on(Event::Due, at(1_003))), LOOK);
    it.on(QUEUED, at(1_004));
    assert_eq!(sends(it.on(WOKEN, at(4_500))), LOOK);
    assert_eq!(it.on(QUEUED, at(4_501)), Step::Wait { until: at(5_000) });
    assert_eq!(sends(it.on(Event::Due, at(5_000))), LOOK_ONCE);
    // An attempt that still has a place leaves it.
    assert_eq!(sends(it.clone().on(QUEUED, at(5_001))), CANCEL);
    assert_eq!(it.on(HELD, at(5_001)), TOLD_HELD);
}

/// Catches: an attempt queues while no wake-up would reach it, or it never queues.
#[test]
fn an_attempt_without_a_channel_takes_a_place_when_there_is_one() {
    let mut it = attempt(Wait::Forever);
    assert_eq!(
        sends(it.on(Event::Started { hears: false }, at(0))),
        LOOK_ONCE
    );
    let channel = Bounds::USUAL.channel;
    let until = at(1) + channel;
    assert_eq!(it.on(HELD, at(1)), Step::Wait { until });
    assert_eq!(sends(it.clone().on(WOKEN, at(2))), LOOK);
    assert_eq!(sends(it.on(Event::Due, until)), LOOK);
}

/// The table of bounds, for a service that does not answer.
#[test]
fn a_silent_service_is_asked_for_so_long() {
    for (wait, end) in [
        (Wait::Never, 2_000),
        (Wait::Until(at(0)), 500),
        (Wait::Until(at(1)), 500),
        (Wait::Until(at(1_000)), 1_000),
        (Wait::Until(at(60_000)), 10_000),
        (Wait::Until(Moment::NEVER), 10_000),
        (Wait::Forever, 10_000),
    ] {
        let mut it = attempt(wait);
        assert_eq!(until(it.on(STARTED, at(0))), at(end), "{wait:?}");
        let step = it.on(Event::Due, at(end));
        assert_eq!(step, Step::Answer(Answer::Failed(SILENT)), "{wait:?}");
        assert!(it.owes());
    }
}

/// Catches: a process that was paused gives up although its answer has arrived.
#[test]
fn an_attempt_whose_process_was_paused_waits_a_moment_for_its_answer() {
    let mut it = attempt(Wait::Forever);
    it.on(STARTED, at(0));
    assert_eq!(
        it.on(Event::Due, at(20_000)),
        Step::Wait { until: at(20_500) }
    );
    let mut answered = it.clone();
    assert_eq!(
        answered.on(granted(), at(20_001)),
        Step::Answer(Answer::Granted(grant()))
    );
    let step = it.on(Event::Due, at(20_500));
    assert_eq!(step, Step::Answer(Answer::Failed(SILENT)));
}

/// The table of bounds, for a service that refuses connections.
#[test]
fn a_dead_service_is_asked_for_so_long() {
    for (wait, end) in [
        (Wait::Never, 2_000),
        (Wait::Until(at(1_000)), 1_000),
        (Wait::Forever, 10_000),
    ] {
        let (mut it, mut now, mut copies) = (attempt(wait), at(0), 1);
        let mut step = it.on(STARTED, now);
        let answer = loop {
            step = match step {
                Step::Send { .. } => {
                    copies += 1;
                    it.on(failed(Outcome::NotApplied), now)
                }
                Step::Wait { until } => {
                    now = until;
                    it.on(Event::Due, now)
                }
                Step::Answer(answer) => break answer,
            };
        };
        assert!(matches!(answer, Answer::Failed(_)));
        assert_eq!(now, at(end), "{wait:?}");
        assert!((5..50).contains(&copies), "{copies}");
        assert!(!it.owes(), "nothing was sent");
    }
}

/// Catches: a task that looks for many attempts gets no answer, and the attempts wait for ever.
#[test]
fn the_silence_of_a_common_task_ends_a_wait() {
    let mut it = attempt(Wait::Forever);
    it.on(STARTED, at(0));
    it.on(QUEUED, at(1));
    let silent = Event::Woken(Wake::Silent(at(500)));
    let far = replied(Reply::Queued {
        left: LEFT,
        look_again: Duration::MAX,
    });
    it.on(WOKEN, at(2));
    assert_eq!(
        it.on(far, at(3)),
        Step::Wait {
            until: Moment::NEVER
        }
    );
    let mut heard = it.clone();
    assert_eq!(it.on(silent, at(600)), Step::Wait { until: at(10_500) });
    let step = it.on(Event::Due, at(10_500));
    assert_eq!(step, Step::Answer(Answer::Failed(SILENT)));
    heard.on(silent, at(600));
    heard.on(Event::Woken(Wake::Heard), at(700));
    assert_eq!(sends(heard.on(Event::Due, at(10_500))), LOOK);
}

#[test]
fn an_offer_is_confirmed_and_one_that_is_gone_is_asked_for_again() {
    let mut it = attempt(END);
    it.on(STARTED, at(0));
    it.on(QUEUED, at(1));
    let offer = Event::Woken(Wake::Offered(grant()));
    assert_eq!(sends(it.on(offer, at(2))), Some(Request::Confirm(grant())));
    assert_eq!(sends(it.clone().on(GONE, at(3))), LOOK);
    assert_eq!(sends(it.clone().on(failed(Outcome::Unknown), at(3))), LOOK);
    let answer = Answer::Granted(grant().after_waiting());
    assert_eq!(it.on(granted(), at(3)), Step::Answer(answer));
    // The look that was under way when it was pushed may arrive later.
    let mut it = attempt(END);
    it.on(STARTED, at(0));
    it.on(offer, at(1));
    it.on(granted(), at(2));
    assert!(!it.needs_no_tombstone());
}

/// Catches: a push that comes late or twice throws away the answer of a look, and prolongs the
/// wait.
/// Catches: each answer puts off the end of the wait.
#[test]
fn an_offer_at_the_end_of_a_wait_does_not_prolong_it() {
    let mut it = attempt(END);
    it.on(STARTED, at(0));
    it.on(QUEUED, at(1));
    let last = it.on(Event::Due, at(5_000));
    assert_eq!((sends(last), until(last)), (LOOK_ONCE, at(5_500)));
    let confirm = it.on(Event::Woken(Wake::Offered(grant())), at(5_400));
    let request = Some(Request::Confirm(grant()));
    assert_eq!((sends(confirm), until(confirm)), (request, at(5_500)));
    let given_up = it.on(Event::Due, at(5_500));
    assert!(matches!(given_up, Step::Answer(Answer::Failed(_))));
    assert!(it.owes());
}

#[test]
fn an_offer_that_has_ended_does_not_replace_a_look() {
    let mut it = attempt(Wait::Forever);
    it.on(STARTED, at(40_000));
    let offer = Event::Woken(Wake::Offered(grant()));
    let until = at(50_000);
    assert_eq!(it.on(offer, at(40_001)), Step::Wait { until });
    let mut queued = it.clone();
    let step = it.on(replied(Reply::Granted(grant_at(40_000))), at(40_002));
    assert!(matches!(step, Step::Answer(Answer::Granted(_))));
    assert!(it.needs_no_tombstone());
    assert_eq!(sends(queued.on(QUEUED, at(40_002))), LOOK);
}

/// Catches: a guard that knows that its lease is lost reports that it was released.
#[test]
fn a_lost_copy_of_a_release_counts_only_if_the_lease_was_held() {
    for (held, tombstone, released) in [
        (true, false, Released::Released),
        (false, false, Released::NotHolder),
        (true, true, Released::NotHolder),
    ] {
        let mut it = attempt(Wait::Never);
        it.on(STARTED, at(0));
        let reply = Reply::Granted(grant());
        let copied = tombstone;
        it.on(Event::Replied { reply, copied }, at(1));
        it.on(Event::Release { held }, at(2));
        let again = Some(Request::Release { tombstone });
        assert_eq!(sends(it.on(failed(Outcome::Unknown), at(3))), again);
        let answer = it.on(NOT_HOLDER, at(4));
        assert_eq!(answer, Step::Answer(Answer::Released(released)));
        assert_eq!(it.owes(), released == Released::NotHolder);
    }
}

/// Catches: a client of several nodes is cut off before it has asked the second one.
#[test]
fn a_request_that_asks_node_after_node_is_asked_as_long_as_that_takes() {
    for (longest, end) in [(0, 2_000), (6_000, 6_000), (15_000, 10_000)] {
        let mut it = attempt(Wait::Never);
        it.terms.longest_request = Duration::from_millis(longest);
        assert_eq!(until(it.on(STARTED, at(0))), at(end));
        it.on(granted(), at(1));
        it.on(Event::Release { held: true }, at(100));
        let again = it.on(failed(Outcome::Unknown), at(100 + end - 1));
        assert_eq!(sends(again), Some(Request::Release { tombstone: false }));
        let step = it.on(failed(Outcome::NotApplied), at(100 + end));
        assert_eq!(step, Step::Answer(Answer::Failed(SILENT)));
    }
}

#[test]
fn a_caller_that_goes_at_any_moment_gives_back_what_may_be_left() {
    let mut it = attempt(END);
    assert!(!it.owes());
    for event in [
        STARTED,
        QUEUED,
        WOKEN,
        failed(Outcome::Unknown),
        Event::Due,
        QUEUED,
    ] {
        it.on(event, at(100));
        assert!(it.owes(), "{event:?}");
        let (mut gone, mut now) = (it.clone(), at(200));
        let mut step = gone.on(Event::Gone, now);
        for _ in 0..3 {
            assert_eq!(sends(step), CANCEL, "{event:?}");
            now = until(gone.on(failed(Outcome::Unknown), now));
            step = gone.on(Event::Due, now);
        }
        assert_eq!(gone.on(CANCELLED, now), Step::Answer(Answer::Clean));
        assert!(!gone.owes());
    }
}

/// Catches: a guard that is dropped ends the lease of another attempt, or does not end its own
/// lease.
#[test]
fn a_guard_that_is_dropped_ends_no_lease_but_its_own() {
    let release = |tombstone| Some(Request::Release { tombstone });
    for (sharing, sent) in [
        (Sharing::Alone, release(false)),
        (Sharing::Holds, release(true)),
        (Sharing::Repeated, CANCEL),
    ] {
        let mut it = shared(sharing, Wait::Never);
        it.on(STARTED, at(0));
        it.on(granted(), at(1));
        assert_eq!(sends(it.clone().on(Event::Gone, at(2))), sent);
        // A release that was under way ends the lease for all attempts.
        it.on(Event::Release { held: true }, at(2));
        let step = it.on(Event::Gone, at(3));
        assert_eq!(sends(step), release(sharing != Sharing::Alone));
        // A lease that was never confirmed keeps its place after it was lost.
        assert_eq!(sends(it.on(NOT_HOLDER, at(4))), CANCEL);
        assert_eq!(it.on(CANCELLED, at(5)), Step::Answer(Answer::Clean));
    }
}

/// Catches: a clean-up goes on for ever, or it ends after the ttl although others keep the lease
/// up.
#[test]
fn what_a_caller_left_is_given_back_for_so_long() {
    for (sharing, end) in [(Sharing::Alone, 30_000), (Sharing::Repeated, 60_000)] {
        let mut it = shared(sharing, Wait::Never);
        it.on(STARTED, at(0));
        let (mut step, mut now) = (it.on(Event::Gone, at(0)), at(0));
        while step != Step::Answer(Answer::Abandoned) {
            assert_eq!(sends(step), CANCEL);
            step = it.on(failed(Outcome::NotApplied), now);
            if let Step::Wait { until } = step {
                now = until;
                step = it.on(Event::Due, now);
            }
        }
        let last = now.since(at(0)) + Duration::from_secs(5);
        let end = Duration::from_millis(end);
        assert!(now.since(at(0)) < end && last >= end, "{now:?}");
        assert!(!it.owes());
    }
}

/// Catches: a shutdown waits for a silent service until the wait of its attempt is over.
#[test]
fn a_shutdown_waits_for_its_cancel_no_longer_than_for_others() {
    for (wait, end) in [
        (END, 2_000),
        (Wait::Until(at(700)), 700),
        (Wait::Forever, 2_000),
    ] {
        let mut it = attempt(wait);
        it.on(STARTED, at(0));
        it.on(QUEUED, at(0));
        assert_eq!(until(it.on(Event::Closed, at(0))), at(end), "{wait:?}");
    }
}

#[test]
fn a_shutdown_cancels_what_may_be_left() {
    let shut_down = |outcome| {
        let kind = ErrorKind::ShutDown;
        Step::Answer(Answer::Failed(Failure { kind, outcome }))
    };
    let mut it = attempt(END);
    let step = it.clone().on(Event::Closed, at(0));
    assert_eq!(step, shut_down(Outcome::NotApplied));
    it.on(STARTED, at(0));
    assert_eq!(sends(it.on(Event::Closed, at(1))), CANCEL);
    let step = it.clone().on(CANCELLED, at(2));
    assert_eq!(step, shut_down(Outcome::NotApplied));
    let step = it.on(failed(Outcome::Unknown), at(2));
    assert_eq!(step, shut_down(Outcome::Unknown));
}

#[test]
fn a_grant_that_arrives_too_late_is_given_back_and_asked_for_once_more() {
    let mut it = attempt(Wait::Forever);
    for answer in [Answer::Late, Answer::TooLate] {
        it.on(STARTED, at(40_000));
        assert_eq!(it.on(granted(), at(40_001)), Step::Answer(answer));
        assert!(it.owes());
        it = it.afresh();
    }
}

#[test]
fn an_attempt_that_polls_goes_by_its_policy() {
    let policy = RetryPolicy::fixed(Duration::from_millis(10)).jitter(Jitter::None);
    let mut it = attempt(Wait::Forever);
    it.terms.polls = Some(Box::new(policy.limit(2).pauses()));
    assert_eq!(sends(it.on(STARTED, at(0))), LOOK_ONCE);
    for (now, next) in [(0, 10), (10, 20)] {
        assert_eq!(it.on(HELD, at(now)), Step::Wait { until: at(next) });
        assert_eq!(sends(it.on(Event::Due, at(next))), LOOK_ONCE);
    }
    assert_eq!(it.on(HELD, at(20)), TOLD_HELD);
    assert_eq!(it.phase, Phase::Ended);
}

/// Catches: a guard that is dropped after its release failed cancels a lease that others share.
#[test]
fn a_release_that_failed_is_a_release_when_it_is_sent_again() {
    let release = Some(Request::Release { tombstone: true });
    let mut it = shared(Sharing::Holds, Wait::Never);
    it.on(STARTED, at(0));
    it.on(granted(), at(0));
    assert_eq!(sends(it.on(Event::GiveUp, at(1))), release);
    // After its bound the release is not sent again.
    let end = it.on(failed(Outcome::Unknown), at(9_000));
    assert!(matches!(end, Step::Answer(Answer::Failed(_))), "{end:?}");
    assert_eq!(sends(it.on(Event::Gone, at(9_001))), release);
}
