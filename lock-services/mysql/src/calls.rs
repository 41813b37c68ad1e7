//! The calls that are sent.

use lock_core::{
    FencingToken, ResourceName, Sequencer, Ttl,
    backend::{AcquireRequest, AttemptId, AttemptRef, RenewRequest, support::LeaseNames},
};
use serde_json::{Value, json};

use super::call::Call;

/// How long an acquire waits, as the argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMillis {
    Look,
    For(i64),
    Forever,
}

pub(super) fn acquire(
    names: &LeaseNames,
    request: &AcquireRequest,
    wait: WaitMillis,
    client: &str,
    not_after_us: i64,
) -> String {
    let wait = match wait {
        WaitMillis::Look => Some(0),
        WaitMillis::For(millis) => Some(millis),
        WaitMillis::Forever => None,
    };
    let claim_for = request.claim.as_ref().map(ToString::to_string);
    of_attempt("acquire", names, &request.attempt)
        .number(millis(request.ttl))
        .number_or_null(wait)
        .text(client)
        .number(floor(request))
        .text_or_null(note(request))
        .number_or_null(request.max_waiters.map(i64::from))
        .number(not_after_us)
        .text_or_null(claim_for.as_deref())
        .statement()
}

/// All requests have the same holder and attempt.
pub(super) fn acquire_together(
    names: &LeaseNames,
    requests: &[AcquireRequest],
    not_after_us: i64,
) -> Option<String> {
    let AttemptRef { holder, id, .. } = &requests.first()?.attempt;
    let asked = requests.iter().map(|request| {
        json!({
            "resource": names.of(&request.attempt.resource),
            "ttl_ms": millis(request.ttl),
            "at_least": floor(request),
            "metadata": note(request),
        })
    });
    let call = Call::new("acquire_together").text(&Value::from_iter(asked).to_string());
    let call = call.text(&holder.digest()).text(&id.to_string());
    Some(call.number(not_after_us).statement())
}

pub(super) fn renew(names: &LeaseNames, leases: &[&RenewRequest]) -> String {
    let asked = leases.iter().map(|lease| {
        json!({
            "resource": names.of(lease.sequencer.resource()),
            "token": i64::from(lease.sequencer.token()),
            "holder": lease.sequencer.holder().digest(),
            "ttl_ms": millis(lease.ttl),
        })
    });
    let list = Value::from_iter(asked).to_string();
    Call::new("renew").text(&list).statement()
}

pub(super) fn release(names: &LeaseNames, lease: &Sequencer, tombstone: bool) -> String {
    let call = of_lease("release", names, lease);
    call.number(tombstone.into()).statement()
}

pub(super) fn release_hold(names: &LeaseNames, lease: &Sequencer, attempt: AttemptId) -> String {
    let call = of_lease("release_hold", names, lease);
    call.text(&attempt.to_string()).statement()
}

pub(super) fn cancel(names: &LeaseNames, attempt: &AttemptRef) -> String {
    of_attempt("cancel", names, attempt).statement()
}

fn of_lease(procedure: &str, names: &LeaseNames, lease: &Sequencer) -> Call {
    Call::new(procedure)
        .lease(names, lease.resource())
        .number(lease.token().into())
        .text(&lease.holder().digest())
}

fn of_attempt(procedure: &str, names: &LeaseNames, attempt: &AttemptRef) -> Call {
    Call::new(procedure)
        .lease(names, &attempt.resource)
        .text(&attempt.holder.digest())
        .text(&attempt.id.to_string())
}

pub(super) fn force_release(
    names: &LeaseNames,
    resource: &ResourceName,
    token: FencingToken,
) -> String {
    let call = Call::new("force_release").lease(names, resource);
    call.number(token.into()).statement()
}

/// For the attempts that are alive, given by their fingerprints, it is a sign of life.
pub(super) fn look(client: &str, alive: &[String]) -> String {
    let call = Call::new("look").text(client);
    call.text(&alive.join(",")).statement()
}

/// Lists one resource, or all.
pub(super) fn leases(names: &LeaseNames, resource: Option<&ResourceName>) -> String {
    let lease = resource.map(|resource| names.of(resource));
    let call = Call::new("leases").text_or_null(lease.as_deref());
    call.statement()
}

pub(super) fn forget_tombstones() -> String {
    Call::new("forget_tombstones").statement()
}

fn millis(ttl: Ttl) -> i64 {
    i64::try_from(ttl.get().as_millis()).unwrap_or(i64::MAX)
}

fn floor(request: &AcquireRequest) -> i64 {
    request.floor.map_or(0, i64::from)
}

fn note(request: &AcquireRequest) -> Option<&str> {
    request.metadata.as_ref().map(|note| note.as_str())
}

#[cfg(test)]
mod tests {
    use lock_core::{Holder, backend::TokioRuntime};

    use super::*;

    #[test]
    fn the_secret_is_in_no_statement() {
        let holder = Holder::random();
        let attempt = AttemptRef::new(&TokioRuntime, ResourceName::new("r").unwrap(), holder);
        let request = AcquireRequest::new(attempt.clone(), Ttl::secs(1));
        let names = LeaseNames::new("jobs");
        let secret = holder.expose();
        let in_hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        for statement in [
            acquire(&names, &request, WaitMillis::Look, "c", 0),
            acquire_together(&names, &[request], 0).unwrap(),
            cancel(&names, &attempt),
        ] {
            assert!(!statement.contains(&secret), "{statement}");
            assert!(!statement.contains(&in_hex), "{statement}");
        }
    }
}
