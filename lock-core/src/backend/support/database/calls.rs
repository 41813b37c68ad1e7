//! The calls that are sent.

use std::{cmp::max, time::Duration};

use super::{AnswerShape, Argument, Call, LONGEST_WAIT, LeaseNames};
use crate::{
    FencingToken, ResourceName, Sequencer,
    backend::{AcquireRequest, AttemptId, AttemptRef, RenewRequest},
};

/// Asks for one lease, with this time to wait in the queue. A request that arrives after
/// `not_after` has no effect.
pub(super) fn acquire(
    names: &LeaseNames,
    request: &AcquireRequest,
    wait: Option<Duration>,
    client: &str,
    not_after: Duration,
) -> Call {
    let most = request.max_waiters;
    let most = most.map(|most| i32::try_from(most).unwrap_or(i32::MAX));
    of_attempt("acquire", names, &request.attempt)
        .answering(AnswerShape::Row)
        .number(millis(request.ttl.get()))
        .number(wait_millis(wait))
        .text(client.to_owned())
        .number(floor(request))
        .text(note(request))
        .with(Argument::Small(most))
        .with(Argument::Time(not_after))
        .text(request.claim.as_ref().map(ToString::to_string))
}

/// The time to wait in milliseconds. With 0 the request leaves the queue. With null it waits
/// without bound.
fn wait_millis(wait: Option<Duration>) -> Option<i64> {
    match wait {
        None => Some(0),
        Some(LONGEST_WAIT) => None,
        Some(wait) => Some(max(millis(wait), 1)),
    }
}

/// Asks for several leases at once. All requests have the same holder and attempt as the first.
pub(super) fn acquire_together(
    names: &LeaseNames,
    requests: &[AcquireRequest],
    first: &AttemptRef,
    not_after: Duration,
) -> Call {
    let lease = |request: &AcquireRequest| names.of(&request.attempt.resource);
    Call::new("acquire_together")
        .with(texts("resource", requests, |request| Some(lease(request))))
        .text(first.holder.digest())
        .text(first.id.to_string())
        .with(numbers("ttl_ms", requests, |request| {
            millis(request.ttl.get())
        }))
        .with(numbers("at_least", requests, floor))
        .with(texts("metadata", requests, note))
        .with(Argument::Time(not_after))
}

pub(super) fn renew(names: &LeaseNames, leases: &[&RenewRequest]) -> Call {
    let holder = |lease: &&RenewRequest| Some(lease.sequencer.holder().digest());
    Call::new("renew")
        .with(texts("resource", leases, |lease| {
            Some(names.of(lease.sequencer.resource()))
        }))
        .with(numbers("token", leases, |lease| {
            lease.sequencer.token().into()
        }))
        .with(texts("holder", leases, holder))
        .with(numbers("ttl_ms", leases, |lease| millis(lease.ttl.get())))
}

pub(super) fn release(names: &LeaseNames, lease: &Sequencer, tombstone: bool) -> Call {
    of_lease("release", names, lease).with(Argument::Flag(tombstone))
}

pub(super) fn release_hold(names: &LeaseNames, lease: &Sequencer, attempt: AttemptId) -> Call {
    of_lease("release_hold", names, lease).text(attempt.to_string())
}

pub(super) fn cancel(names: &LeaseNames, attempt: &AttemptRef) -> Call {
    of_attempt("cancel", names, attempt)
}

fn of_lease(procedure: &'static str, names: &LeaseNames, lease: &Sequencer) -> Call {
    Call::new(procedure)
        .answering(AnswerShape::Outcome)
        .text(names.of(lease.resource()))
        .number(i64::from(lease.token()))
        .text(lease.holder().digest())
}

fn of_attempt(procedure: &'static str, names: &LeaseNames, attempt: &AttemptRef) -> Call {
    Call::new(procedure)
        .text(names.of(&attempt.resource))
        .text(attempt.holder.digest())
        .text(attempt.id.to_string())
}

pub(super) fn force_release(
    names: &LeaseNames,
    resource: &ResourceName,
    token: FencingToken,
) -> Call {
    Call::new("force_release")
        .text(names.of(resource))
        .number(i64::from(token))
}

/// Asks for the places of the waiters of this client. For the attempts in `alive` the call is a
/// sign of life.
pub(super) fn look(client: &str, alive: &[String]) -> Call {
    Call::new("look")
        .text(client.to_owned())
        .with(Argument::Attempts(alive.to_vec()))
}

/// Lists one lease, or all.
pub(super) fn leases(names: &LeaseNames, only: Option<&ResourceName>) -> Call {
    Call::new("leases").text(only.map(|resource| names.of(resource)))
}

fn texts<T>(name: &'static str, of: &[T], text: impl Fn(&T) -> Option<String>) -> Argument {
    Argument::Texts(name, of.iter().map(text).collect())
}

fn numbers<T>(name: &'static str, of: &[T], number: impl Fn(&T) -> i64) -> Argument {
    Argument::Numbers(name, of.iter().map(number).collect())
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn floor(request: &AcquireRequest) -> i64 {
    request.floor.map_or(0, i64::from)
}

fn note(request: &AcquireRequest) -> Option<String> {
    let note = request.metadata.as_ref();
    note.map(|note| note.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Holder, TokioRuntime, Ttl};

    /// Catches: a secret that a log of the database's statements would show.
    #[test]
    fn the_secret_is_in_no_call() {
        let (holder, names) = (Holder::random(), LeaseNames::new("jobs"));
        let attempt = AttemptRef::new(&TokioRuntime, ResourceName::new("r").unwrap(), holder);
        let request = AcquireRequest::new(attempt.clone(), Ttl::secs(1));
        let now = Duration::ZERO;
        for call in [
            acquire(&names, &request, None, "c", now),
            acquire_together(&names, &[request], &attempt, now),
            cancel(&names, &attempt),
        ] {
            let call = format!("{call:?}");
            assert!(call.contains(&holder.digest()), "{call}");
            assert!(!call.contains(&holder.expose()), "{call}");
        }
    }

    /// Catches: a wait that becomes a wait without bound, or a single look.
    #[test]
    fn a_wait_is_in_millis_with_two_exceptions() {
        for (wait, millis) in [
            (None, Some(0)),
            (Some(Duration::from_nanos(1)), Some(1)),
            (Some(Duration::from_secs(2)), Some(2000)),
            (Some(LONGEST_WAIT), None),
        ] {
            assert_eq!(wait_millis(wait), millis, "{wait:?}");
        }
    }
}
