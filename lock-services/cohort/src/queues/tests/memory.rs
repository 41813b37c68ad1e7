//! What is remembered about resources that nobody comes back for.

use super::{
    super::{Entry, Queues, Release, Renewal, Step},
    world::TTL,
};
use crate::Cohort;
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, Error, ErrorKind, FencingToken, Grant, Holder, Issuer,
    Lease, Moment, RenewRequest, ResourceName, Sequencer, Ttl, Upkeep,
};

/// A holder who is alone gets a shared lease.
fn alone(queues: &mut Queues, now: Moment) -> Sequencer {
    let resource = ResourceName::new("r").unwrap();
    let attempt = AttemptRef::new(resource.clone(), Holder::random());
    let holder = attempt.holder;
    let mut request = AcquireRequest::new(attempt, TTL);
    request.upkeep = Upkeep::Watchdog;
    let Entry::Queued(place) = queues.enter(&request, now) else {
        panic!("it joins");
    };
    assert!(place.undriven.is_some(), "it is new");
    let Step::Ask(asking, _) = queues.next_step(&resource, now) else {
        panic!("it is alone");
    };
    let grant = Grant::new(FencingToken::MIN, Lease::counted_from(now, TTL.get()));
    queues.answered(&asking, Ok(Attempt::Granted(grant)), now);
    let issuer = Issuer::new("test").unwrap();
    Sequencer::new(issuer, resource, FencingToken::MIN, holder)
}

/// The service does not answer.
fn lost() -> Error {
    Error::unknown(ErrorKind::Unavailable)
}

/// Catches: a queue that stays for ever because its holder is never heard of again.
#[test]
fn what_has_run_out_is_forgotten_though_nobody_comes_back_for_it() {
    let mut queues = Queues::new(Cohort::PASSES);
    let mut now = Moment::default();
    let current = alone(&mut queues, now);
    loop {
        match queues.next_step(current.resource(), now) {
            Step::Watch(until) => now = until,
            Step::End(pending) => queues.ended(&pending, &Err(lost()), now),
            Step::Done => break,
            other => panic!("nobody waits: {other:?}"),
        }
    }
    assert!(queues.queues.is_empty());
    assert_eq!(now.since_origin(), TTL.get() * 2);
}

/// Catches: a holder renews for longer than the ttl of the shared lease, and its release is
/// forgotten too early.
#[test]
fn a_pending_release_is_remembered_for_as_long_as_any_renewal_of_its_lease() {
    let (mut queues, now) = (Queues::new(Cohort::PASSES), Moment::default());
    let current = alone(&mut queues, now);
    let longer = Ttl::new(TTL.get() * 10).unwrap();
    let renewal = queues.renewal(&RenewRequest::new(current.clone(), longer), now);
    assert!(matches!(renewal, Renewal::Shared(_)));
    // The answer to the renewal is lost, as is the release.
    let Release::Begin(pending, _) = queues.release(&current, now) else {
        panic!("nobody else waits");
    };
    queues.ended(&pending, &Err(lost()), now);
    let until = now + longer.get();
    let step = queues.next_step(current.resource(), now);
    assert!(
        matches!(step, Step::Watch(moment) if moment == until),
        "{step:?}"
    );
    assert!(matches!(
        queues.next_step(current.resource(), until),
        Step::Done
    ));
}
