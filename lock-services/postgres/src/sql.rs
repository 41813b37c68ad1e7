//! The calls that are sent, and a few statements besides.

use lock_core::{
    FencingToken, ResourceName, Sequencer, Ttl,
    backend::{AcquireRequest, AttemptId, AttemptRef, RenewRequest},
};

use super::call::{Call, Value};

/// How long an acquire waits, as the argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMillis {
    Look,
    For(i64),
    Forever,
}

pub(super) fn acquire(
    request: &AcquireRequest,
    wait: WaitMillis,
    channel: &str,
    not_after: Value,
) -> Call {
    let wait = match wait {
        WaitMillis::Look => Some(0),
        WaitMillis::For(millis) => Some(millis),
        WaitMillis::Forever => None,
    };
    let most = request.max_waiters;
    let claim_for = request.claim.as_ref().map(ToString::to_string);
    of_attempt(Call::of_a_row("acquire"), &request.attempt)
        .with(millis(request.ttl))
        .with(wait)
        .with(channel.to_owned())
        .with(floor(request))
        .with(note(request))
        .with(most.map(|most| i32::try_from(most).unwrap_or(i32::MAX)))
        .with(not_after)
        .with(claim_for)
}

/// All requests have the same holder and attempt.
pub(super) fn acquire_together(requests: &[AcquireRequest], not_after: Value) -> Option<Call> {
    let AttemptRef { holder, id, .. } = &requests.first()?.attempt;
    let name = |request: &AcquireRequest| request.attempt.resource.to_string();
    let ttl = |request: &AcquireRequest| millis(request.ttl);
    let call = Call::new("acquire_together")
        .with(Value::Leases(requests.iter().map(name).collect()))
        .with(holder.digest())
        .with(id.to_string())
        .with(requests.iter().map(ttl).collect::<Vec<_>>())
        .with(requests.iter().map(floor).collect::<Vec<_>>())
        .with(requests.iter().map(note).collect::<Vec<_>>())
        .with(not_after);
    Some(call)
}

pub(super) fn renew(leases: &[&RenewRequest]) -> Call {
    let of = |text: fn(&Sequencer) -> String| {
        let texts = leases.iter().map(|lease| text(&lease.sequencer));
        texts.collect::<Vec<_>>()
    };
    let tokens = leases.iter().map(|lease| lease.sequencer.token().into());
    let ttls = leases.iter().map(|lease| millis(lease.ttl));
    Call::new("renew")
        .with(Value::Leases(of(|lease| lease.resource().to_string())))
        .with(tokens.collect::<Vec<i64>>())
        .with(of(|lease| lease.holder().digest()))
        .with(ttls.collect::<Vec<_>>())
}

pub(super) fn release(lease: &Sequencer, tombstone: bool) -> Call {
    of_lease("release", lease).with(tombstone)
}

pub(super) fn release_hold(lease: &Sequencer, attempt: AttemptId) -> Call {
    of_lease("release_hold", lease).with(attempt.to_string())
}

pub(super) fn cancel(attempt: &AttemptRef) -> Call {
    of_attempt(Call::new("cancel"), attempt)
}

fn of_lease(function: &'static str, lease: &Sequencer) -> Call {
    Call::of_outcome(function)
        .with(lease.resource())
        .with(i64::from(lease.token()))
        .with(lease.holder().digest())
}

fn of_attempt(call: Call, attempt: &AttemptRef) -> Call {
    call.with(&attempt.resource)
        .with(attempt.holder.digest())
        .with(attempt.id.to_string())
}

pub(super) fn force_release(resource: &ResourceName, token: FencingToken) -> Call {
    Call::new("force_release")
        .with(resource)
        .with(i64::from(token))
}

/// For the attempts that are alive it is a sign of life.
pub(super) fn look(channel: &str, alive: Vec<String>) -> Call {
    Call::new("look").with(channel.to_owned()).with(alive)
}

/// Lists one resource, or all.
pub(super) fn leases(resource: Option<&ResourceName>) -> Call {
    Call::new("leases").with(resource)
}

pub(super) fn forget_tombstones() -> Call {
    Call::new("forget_tombstones")
}

fn millis(ttl: Ttl) -> i64 {
    i64::try_from(ttl.get().as_millis()).unwrap_or(i64::MAX)
}

fn floor(request: &AcquireRequest) -> i64 {
    request.floor.map_or(0, i64::from)
}

fn note(request: &AcquireRequest) -> Option<String> {
    let note = request.metadata.as_ref();
    note.map(|note| note.as_str().to_owned())
}

/// A notice to ourselves.
pub(super) fn notify(channel: &str) -> String {
    // It has letters, digits and `_` only.
    format!("SELECT pg_catalog.pg_notify('{channel}', '')")
}

/// The role that owns the schema, if a superuser must not call its functions.
pub(super) const OWNER: &str = "SELECT (SELECT o.rolname::pg_catalog.text \
    FROM pg_catalog.pg_namespace n, pg_catalog.pg_roles o, pg_catalog.pg_roles u \
    WHERE n.nspname OPERATOR(pg_catalog.=) 'fenced' AND o.oid OPERATOR(pg_catalog.=) n.nspowner \
    AND u.rolname OPERATOR(pg_catalog.=) current_user AND u.rolsuper AND NOT o.rolsuper) AS owner";

/// The facts that a client has to know of the database: its clock, its interface, whether it takes
/// writes.
pub(super) const WELCOME: &str = "SELECT fenced.lock_service_version() AS version, \
    CAST(extract(epoch from pg_catalog.clock_timestamp()) \
    OPERATOR(pg_catalog.*) 1000000 AS bigint) AS unix_micros, \
    pg_catalog.current_setting('transaction_isolation') AS isolation, \
    pg_catalog.current_setting('transaction_read_only') AS read_only";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::{Holder, backend::TokioRuntime};

    use super::*;

    #[test]
    fn the_secret_is_in_no_statement() {
        let holder = Holder::random();
        let attempt = AttemptRef::new(&TokioRuntime, ResourceName::new("r").unwrap(), holder);
        let request = AcquireRequest::new(attempt.clone(), Ttl::secs(1));
        let now = || Value::Time(Duration::ZERO);
        for call in [
            acquire(&request, WaitMillis::Look, "c", now()),
            acquire_together(&[request], now()).unwrap(),
            cancel(&attempt),
        ] {
            let sql = call.text();
            assert!(!sql.contains(&holder.expose()), "{sql}");
        }
    }
}
