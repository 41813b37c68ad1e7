//! The texts that are sent. The simple protocol has no parameters, so values are literals.

use std::fmt::Write as _;

use lock_core::{
    AcquireRequest, AttemptId, AttemptRef, FencingToken, RenewRequest, ResourceName, Sequencer,
};

/// In front of each call: a transaction of its own, at the isolation level that it needs whatever
/// the session's default is. A session that somebody left inside a transaction is refused, because
/// its rollback would take the lease back: `SET` comes too late there, or the cast of the text
/// fails. (Times count in microseconds, and messages take longer.)
const ALONE: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; \
    SELECT CASE WHEN pg_catalog.transaction_timestamp() \
    OPERATOR(pg_catalog.<>) pg_catalog.statement_timestamp() \
    THEN CAST(pg_catalog.concat('in a transaction since ', \
    pg_catalog.transaction_timestamp()) AS boolean) END AS alone, answer.* FROM fenced.";

fn call(function: &str, arguments: &[String]) -> String {
    format!("{ALONE}{function}({}) answer", arguments.join(", "))
}

/// How long an acquire waits, as the database is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMillis {
    Look,
    For(u64),
    Forever,
}

pub(super) fn acquire(
    request: &AcquireRequest,
    wait: WaitMillis,
    channel: &str,
    not_after: &str,
) -> String {
    let AttemptRef {
        resource,
        holder,
        id,
    } = &request.attempt;
    let wait = match wait {
        WaitMillis::Look => "0".to_owned(),
        WaitMillis::For(millis) => millis.to_string(),
        WaitMillis::Forever => "NULL".to_owned(),
    };
    let floor = request.floor.map_or(0, FencingToken::get);
    call(
        "acquire",
        &[
            literal(resource.as_str()),
            literal(&holder.digest()),
            literal(&id.to_string()),
            request.ttl.get().as_millis().to_string(),
            wait,
            literal(channel),
            floor.to_string(),
            request.reserve.to_string(),
            optional(request.metadata.as_ref().map(|note| literal(note.as_str()))),
            optional(request.max_waiters),
            not_after.to_owned(),
        ],
    )
}

/// All requests have the same holder and attempt.
pub(super) fn acquire_all(requests: &[AcquireRequest], not_after: &str) -> Option<String> {
    let AttemptRef { holder, id, .. } = &requests.first()?.attempt;
    let list = |item: fn(&AcquireRequest) -> String, kind| array(requests.iter().map(item), kind);
    Some(call(
        "acquire_all",
        &[
            list(|request| literal(request.attempt.resource.as_str()), "text"),
            literal(&holder.digest()),
            literal(&id.to_string()),
            list(
                |request| request.ttl.get().as_millis().to_string(),
                "bigint",
            ),
            list(
                |request| request.floor.map_or(0, FencingToken::get).to_string(),
                "bigint",
            ),
            list(|request| request.reserve.to_string(), "integer"),
            list(
                |request| optional(request.metadata.as_ref().map(|note| literal(note.as_str()))),
                "text",
            ),
            not_after.to_owned(),
        ],
    ))
}

pub(super) fn renew(leases: &[&RenewRequest]) -> String {
    let list = |item: fn(&Sequencer) -> String, kind| {
        array(leases.iter().map(|lease| item(&lease.sequencer)), kind)
    };
    let ttls = leases
        .iter()
        .map(|lease| lease.ttl.get().as_millis().to_string());
    call(
        "renew",
        &[
            list(|lease| literal(lease.resource().as_str()), "text"),
            list(|lease| lease.token().to_string(), "bigint"),
            list(|lease| literal(&lease.holder().digest()), "text"),
            array(ttls, "bigint"),
        ],
    )
}

pub(super) fn release(lease: &Sequencer, tombstone: bool) -> String {
    let mut arguments = of_lease(lease);
    arguments.push(tombstone.to_string());
    call("release", &arguments)
}

pub(super) fn release_hold(lease: &Sequencer, attempt: AttemptId) -> String {
    let mut arguments = of_lease(lease);
    arguments.push(literal(&attempt.to_string()));
    call("release_hold", &arguments)
}

fn of_lease(lease: &Sequencer) -> Vec<String> {
    vec![
        literal(lease.resource().as_str()),
        lease.token().to_string(),
        literal(&lease.holder().digest()),
    ]
}

pub(super) fn cancel(attempt: &AttemptRef) -> String {
    call(
        "cancel",
        &[
            literal(attempt.resource.as_str()),
            literal(&attempt.holder.digest()),
            literal(&attempt.id.to_string()),
        ],
    )
}

pub(super) fn force_release(resource: &ResourceName, token: FencingToken) -> String {
    call(
        "force_release",
        &[literal(resource.as_str()), token.to_string()],
    )
}

/// For the attempts that are alive it is a sign of life.
pub(super) fn look<'a>(channel: &str, alive: impl Iterator<Item = &'a str>) -> String {
    call(
        "look",
        &[literal(channel), array(alive.map(literal), "text")],
    )
}

/// Of one resource, or of all.
pub(super) fn leases(resource: Option<&ResourceName>) -> String {
    call(
        "leases",
        &[optional(resource.map(|name| literal(name.as_str())))],
    )
}

pub(super) fn forget_tombstones() -> String {
    call("forget_tombstones", &[])
}

/// A notice to ourselves.
pub(super) fn notify(channel: &str) -> String {
    format!("SELECT pg_catalog.pg_notify({}, '')", literal(channel))
}

/// Where the server is, as it sees itself: the address of a connection that came over the network,
/// and the port that it is set to.
pub(super) const WHERE: &str = "SELECT pg_catalog.host(pg_catalog.inet_server_addr()) AS address, \
    pg_catalog.inet_server_port() AS port, \
    CAST(pg_catalog.current_setting('port') AS integer) AS set_port";

/// What a client has to know of the database: its clock, and the interface that it has.
pub(super) const WELCOME: &str = "SELECT fenced.lock_service_version() AS version, \
    CAST(extract(epoch from clock_timestamp()) * 1000000 AS bigint) AS unix_micros";

/// A literal that means the same whatever `standard_conforming_strings` says.
fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 3);
    if text.contains('\\') {
        literal.push('E');
    }
    literal.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            literal.push(character);
        }
        literal.push(character);
    }
    literal.push('\'');
    literal
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

fn array(items: impl Iterator<Item = String>, kind: &str) -> String {
    let mut array = "ARRAY[".to_owned();
    for (index, item) in items.enumerate() {
        if index > 0 {
            array.push_str(", ");
        }
        array.push_str(&item);
    }
    // Writing to a `String` cannot fail.
    write!(array, "]::{kind}[]").unwrap_or_default();
    array
}

#[cfg(test)]
mod tests {
    use lock_core::{Holder, Ttl};

    use super::*;

    #[test]
    fn a_text_stays_inside_its_literal() {
        assert_eq!(literal("a');drop--"), "'a'');drop--'");
        assert_eq!(literal(r"a\'"), r"E'a\\'''");
    }

    #[test]
    fn the_secret_is_in_no_statement() {
        let holder = Holder::random();
        let attempt = AttemptRef::new(ResourceName::new("r").unwrap(), holder);
        let request = AcquireRequest::new(attempt.clone(), Ttl::secs(1));
        for sql in [
            acquire(&request, WaitMillis::Look, "c", "NULL"),
            acquire_all(&[request], "NULL").unwrap(),
            cancel(&attempt),
        ] {
            assert!(!sql.contains(&holder.expose()), "{sql}");
        }
    }
}
