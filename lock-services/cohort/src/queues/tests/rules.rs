//! One story for each rule of the cohort. Without the rule, the story ends badly. The model checker
//! found these stories (`tests/models`).

use super::world::{Reply, Request, TTL, World};
use lock_core::{Error, ErrorKind, Released, Ttl, Wait, support::LATE_GRANTS_MAX};

/// A world in which this many tasks wait, and the request for their shared lease is under way.
///
/// The first to come asks at once, for itself alone. Its lease is given back, so that the next
/// request is for all the others.
fn in_line(waiters: usize) -> (World, Vec<usize>) {
    let mut world = World::new(32);
    let first = world.begin();
    let tasks = (0..waiters).map(|_| world.begin()).collect();
    world.exchange();
    assert!(world.token(first).is_some());
    world.finish(first);
    world.exchange_end();
    (world, tasks)
}

impl World {
    /// Runs and answers the oldest request to end something.
    fn exchange_end(&mut self) {
        let is_end = |request: &Request| matches!(request, Request::End(_));
        let place = self.requests.iter().position(is_end).unwrap();
        let request = self.requests.remove(place);
        self.run(request);
        let reply = self.replies.pop().unwrap();
        self.hear(reply);
    }

    /// Has the oldest request refused.
    fn refuse(&mut self, kind: ErrorKind) {
        let Request::Acquire(asking, _) = self.requests.remove(0) else {
            panic!("a shared lease is asked for");
        };
        let error = Error::not_applied(kind);
        self.hear(Reply::Acquired(asking, Err(error)));
    }

    fn is_free(&self) -> bool {
        self.service.lease.is_none()
    }
}

#[test]
fn a_queue_is_served_in_its_order_with_tokens_in_a_row_and_one_request() {
    let (mut world, tasks) = in_line(3);
    assert_eq!(world.requests.len(), 1);
    world.exchange();
    let first = world.token(tasks[0]).unwrap();
    for (next, task) in (first..).zip(&tasks) {
        assert_eq!(world.token(*task), Some(next));
        assert_eq!(world.requests.len(), 0, "a pass needs no request");
        world.finish(*task);
    }
    world.exchange();
    assert!(world.is_free() && world.requests.is_empty());
}

#[test]
fn who_began_after_the_request_was_sent_is_not_passed_the_lock() {
    let (mut world, tasks) = in_line(2);
    let request = world.requests.remove(0);
    world.run(request);
    let reply = world.replies.pop().unwrap();
    world.force();
    world.rival().unwrap();
    let late = world.begin();
    world.leave(tasks[1]);
    world.hear(reply);
    assert!(world.token(tasks[0]).is_some());
    // A token is left, but it is smaller than the one that the rival got before `late` began.
    world.finish(tasks[0]);
    assert!(world.is_waiting(late));
}

/// Catches: the first holder of a grant came after a rival had a greater token.
#[test]
fn the_first_holder_of_a_grant_was_in_the_queue_before_its_request_was_sent() {
    let (mut world, tasks) = in_line(1);
    let request = world.requests.remove(0);
    world.run(request);
    let reply = world.replies.pop().unwrap();
    world.force();
    world.rival().unwrap();
    let late = world.begin();
    world.leave(tasks[0]);
    world.hear(reply);
    assert!(world.is_waiting(late));
}

#[test]
fn a_renewal_counts_once_it_is_answered() {
    let (mut world, tasks) = in_line(2);
    world.exchange();
    world.leave(tasks[1]);
    world.force();
    world.rival().unwrap();
    let late = world.begin();
    assert!(world.renew(tasks[0]));
    world.finish(tasks[0]);
    assert!(world.is_waiting(late));
}

/// Catches: who comes while a lease is renewed is never passed the lock, or without a renewal.
#[test]
fn an_answered_renewal_lets_in_who_came_before_it_was_sent() {
    let (mut world, tasks) = in_line(3);
    world.exchange();
    world.leave(tasks[1]);
    world.leave(tasks[2]);
    let before = world.begin();
    assert!(world.renew(tasks[0]));
    let after = world.begin();
    world.exchange();
    world.finish(tasks[0]);
    assert_eq!(
        world.token(before),
        Some(world.token(tasks[0]).unwrap() + 1)
    );
    world.finish(before);
    assert!(world.is_waiting(after));
}

#[test]
fn nobody_is_passed_the_lock_after_its_lease_ran_out() {
    let (mut world, tasks) = in_line(2);
    let request = world.requests.remove(0);
    world.run(request);
    let reply = world.replies.pop().unwrap();
    world.pass(TTL.get());
    world.hear(reply);
    assert!(world.is_waiting(tasks[0]), "the first pass");

    let (mut world, tasks) = in_line(2);
    // Not confirmed yet, so it ends before the first quarter of its ttl is over.
    let lease = TTL.get() / 8;
    world.service.lease_max = Some(lease);
    world.exchange();
    // The driver has not looked yet.
    world.now = world.now + lease;
    world.finish(tasks[0]);
    assert!(world.is_waiting(tasks[1]), "a later pass");
}

/// Catches: a token that the service has not reserved, and may grant to others.
#[test]
fn nobody_is_passed_the_lock_beyond_the_reserve() {
    let (mut world, tasks) = in_line(2);
    // The service reserves less than it was asked for.
    world.service.reserve_max = Some(1);
    world.exchange();
    world.finish(tasks[0]);
    assert!(world.is_waiting(tasks[1]));
    world.exchange_end();
    world.exchange();
    assert!(world.token(tasks[1]).is_some());
}

#[test]
fn a_shared_lease_is_passed_on_in_the_first_quarter_of_its_ttl() {
    let (mut world, tasks) = in_line(2);
    world.exchange();
    world.pass(TTL.get() / 4);
    world.finish(tasks[0]);
    assert!(world.is_waiting(tasks[1]));
}

#[test]
fn a_holder_that_has_passed_the_lock_on_touches_it_no_more() {
    let (mut world, tasks) = in_line(2);
    world.exchange();
    assert_eq!(world.finish(tasks[0]), Some(Released::Released));
    assert_eq!(world.finish(tasks[0]), Some(Released::Released), "repeated");
    assert!(!world.renew(tasks[0]));
    world.cancel(tasks[0]);
    assert_eq!(
        world.current_holder(),
        Some(world.tasks[tasks[1]].attempt.holder)
    );
    assert!(world.requests.is_empty());
}

/// So do a release and a renewal of an earlier shared lease, and the answers to them.
#[test]
fn what_comes_late_of_an_earlier_lease_does_not_touch_the_present_one() {
    let (mut world, tasks) = in_line(1);
    world.exchange();
    assert!(world.renew(tasks[0]));
    let late = world.requests.remove(0);
    world.finish(tasks[0]);
    let next = world.begin();
    world.exchange_end();
    world.exchange();
    assert!(world.token(next).is_some());
    world.run(late);
    let answer = world.replies.pop().unwrap();
    assert!(matches!(answer, Reply::Renewed(..)));
    world.hear(answer);
    assert_eq!(world.finish(tasks[0]), Some(Released::Released));
    assert!(!world.renew(tasks[0]));
    assert_eq!(
        world.current_holder(),
        Some(world.tasks[next].attempt.holder)
    );
}

/// Catches: the rest of a lease that was lost is passed on.
#[test]
fn a_loss_voids_what_is_left() {
    let (mut world, tasks) = in_line(2);
    world.exchange();
    world.force();
    world.rival().unwrap();
    assert!(world.renew(tasks[0]));
    world.exchange();
    assert_eq!(world.current_holder(), None);
    assert_eq!(world.finish(tasks[0]), Some(Released::NotHolder));
    assert!(world.is_waiting(tasks[1]));
    world.force();
    world.exchange_end();
    world.exchange();
    assert!(world.token(tasks[1]).is_some());
}

#[test]
fn when_the_queue_empties_while_asking_the_lease_is_given_back() {
    let (mut world, tasks) = in_line(1);
    let request = world.requests.remove(0);
    world.run(request);
    world.leave(tasks[0]);
    world.exchange_end();
    assert!(world.is_free());
    // The answer arrives after that.
    let reply = world.replies.pop().unwrap();
    world.hear(reply);
    assert_eq!(world.current_holder(), None);
    assert!(world.queues.queues.is_empty(), "nothing is remembered");
}

/// Catches: the waiter that watched the deadline goes away, and nobody asks again.
#[test]
fn somebody_watches_the_deadline_whoever_leaves() {
    for leaver in 0..3 {
        let (mut world, tasks) = in_line(4);
        world.exchange();
        world.leave(tasks[leaver + 1]);
        // The holder never comes back.
        world.pass(TTL.get());
        assert!(!world.requests.is_empty(), "nobody asks: {leaver}");
    }
}

/// Catches: a lease that is not renewed outlives the ttl that its holder asked for.
#[test]
fn a_waiter_with_a_shorter_ttl_than_is_left_asks_for_itself() {
    let mut world = World::new(32);
    let first = world.begin();
    let long = world.begin();
    let short = world.begin_with(Ttl::millis(50));
    world.exchange();
    world.finish(first);
    world.exchange_end();
    world.exchange();
    world.finish(long);
    assert!(world.is_waiting(short));
    world.exchange_end();
    world.exchange();
    assert!(world.token(short).is_some());
}

/// Catches: one who only looks is told "held", and so are all who wait.
#[test]
fn what_one_look_came_to_is_told_to_nobody_who_waits() {
    let mut world = World::new(32);
    world.rival().unwrap();
    let hasty = world.enter(TTL, Wait::Never);
    let patient = world.begin();
    world.exchange();
    assert!(!world.is_waiting(hasty) && world.token(hasty).is_none());
    assert!(world.is_waiting(patient));
    world.force();
    world.exchange();
    assert!(world.token(patient).is_some());
}

/// Catches: a waiter fails on the terms of another, who has left since.
#[test]
fn a_refusal_of_ones_own_terms_is_told_to_nobody_else() {
    for kind in [
        ErrorKind::QueueFull,
        ErrorKind::InvalidInput,
        ErrorKind::Unsupported,
    ] {
        let (mut world, tasks) = in_line(2);
        world.leave(tasks[0]);
        world.refuse(kind);
        assert!(world.is_waiting(tasks[1]), "{kind}");
        world.exchange();
        assert!(world.token(tasks[1]).is_some(), "it asks on its own terms");
    }
    let (mut world, tasks) = in_line(2);
    world.refuse(ErrorKind::QueueFull);
    assert!(!world.is_waiting(tasks[0]) && world.token(tasks[0]).is_none());
    assert!(world.is_waiting(tasks[1]));
}

/// Catches: a service that is slower than a ttl is asked for ever.
#[test]
fn grants_that_come_too_late_end_in_an_error_and_not_in_a_loop() {
    let (mut world, tasks) = in_line(1);
    for _ in 0..LATE_GRANTS_MAX {
        assert!(world.is_waiting(tasks[0]));
        let is_acquire = |request: &Request| matches!(request, Request::Acquire(..));
        let place = world.requests.iter().position(is_acquire).unwrap();
        let request = world.requests.remove(place);
        world.run(request);
        let reply = world.replies.pop().unwrap();
        world.pass(TTL.get());
        world.hear(reply);
    }
    assert!(!world.is_waiting(tasks[0]) && world.token(tasks[0]).is_none());
}
