//! What is remembered about resources that nobody comes back for.

use super::{
    super::{Duty, Entry, Lines, Release, Renewal},
    world::TTL,
};
use crate::Cohort;
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, FencingToken, Grant, Holder, Issuer, Lease, Moment,
    RenewRequest, ResourceName, Sequencer, Ttl, Upkeep,
};

/// A holder who is alone gets a tenure.
fn tenure(lines: &mut Lines, name: &str, now: Moment) -> Sequencer {
    let resource = ResourceName::new(name).unwrap();
    let attempt = AttemptRef::new(resource.clone(), Holder::random());
    let holder = attempt.holder;
    let mut request = AcquireRequest::new(attempt, TTL);
    request.upkeep = Upkeep::Watchdog;
    let Entry::InLine(place) = lines.enter(&request, now) else {
        panic!("it joins");
    };
    let Duty::Ask(asking, _) = lines.duty(&place.ticket, now) else {
        panic!("it is alone");
    };
    let grant = Grant::new(FencingToken::MIN, Lease::counted_from(now, TTL.get()));
    lines.answered(&asking, Ok(Attempt::Granted(grant)), now);
    let issuer = Issuer::new("test").unwrap();
    Sequencer::new(issuer, resource, FencingToken::MIN, holder)
}

#[test]
fn what_has_run_out_is_forgotten_though_nobody_comes_back_for_it() {
    let mut lines = Lines::new("test", Cohort::PASSES);
    let mut now = Moment::default();
    for number in 0..10_000 {
        tenure(&mut lines, &format!("r{number}"), now);
        // Its holder is never heard of again.
        now = now + TTL.get();
    }
    let remembered = lines.lines.len();
    assert!(remembered < 5_000, "{remembered} resources");
}

/// A holder may ask for longer renewals than the one did whose terms the tenure has.
#[test]
fn a_debt_is_remembered_for_as_long_as_any_renewal_of_its_tenure() {
    let (mut lines, now) = (Lines::new("test", Cohort::PASSES), Moment::default());
    let local = tenure(&mut lines, "r", now);
    let longer = Ttl::new(TTL.get() * 10).unwrap();
    let renewal = lines.renewal(&RenewRequest::new(local.clone(), longer), now);
    assert!(matches!(renewal, Renewal::Tenure(_)));
    // The answer to the renewal is lost, as is the release.
    let Release::Owed(debt) = lines.release(&local, now) else {
        panic!("nobody else waits");
    };
    lines.stop_paying(&debt);
    lines.purge(now + TTL.get() * 9);
    assert_eq!(lines.take_up_debts(local.resource()).len(), 1);
    lines.stop_paying(&debt);
    lines.purge(now + longer.get());
    assert!(lines.lines.is_empty(), "the service has ended it");
}
