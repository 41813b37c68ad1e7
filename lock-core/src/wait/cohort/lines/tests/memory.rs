//! What is remembered about resources that nobody comes back for.

use super::{
    super::{Duty, Entry, Lines},
    world::TTL,
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, FencingToken, Grant, Holder, Lease, Moment, ResourceName,
    Upkeep, wait::Cohort,
};

#[test]
fn what_has_run_out_is_forgotten_though_nobody_comes_back_for_it() {
    let mut lines = Lines::new("test", Cohort::PASSES);
    let mut now = Moment::default();
    for number in 0..10_000 {
        let resource = ResourceName::new(format!("r{number}")).unwrap();
        let attempt = AttemptRef::new(resource, Holder::random());
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
        // Its holder is never heard of again.
        now = now + TTL.get();
    }
    let remembered = lines.lines.len();
    assert!(remembered < 5_000, "{remembered} resources");
}
