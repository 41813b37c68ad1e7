use fenced_http::ProblemType;
use utoipa::openapi::{
    HttpMethod, PathItem, Required, ResponseBuilder,
    path::{Operation, Parameter, PathItemBuilder},
};

use super::{
    endpoint::Endpoint,
    parts::{REFUSED_AT_THE_EDGE, fencing_token, header, json, resource, text, with_lease},
};
use crate::gateway::{
    idempotency, problems,
    wire::{
        AcquireBody, ForceReleasedBody, InspectBody, LeaseBody, LeasesBody, RenewBody, RenewedBody,
    },
};

const TAG: &str = "leases";
const OPERATORS: &str = "operators";

/// `/v1/leases/{resource}`
pub(super) fn item() -> PathItem {
    PathItemBuilder::new()
        .operation(HttpMethod::Get, inspect())
        .operation(HttpMethod::Post, acquire())
        .operation(HttpMethod::Put, renew())
        .operation(HttpMethod::Delete, release())
        .build()
}

fn acquire() -> Operation {
    Endpoint::new(
        "acquireLease",
        TAG,
        "Acquire a lease, or wait in line for it",
    )
    .describe(
        "Nobody renews it for you: it ends after `ttl_ms`. The store has been told of its token \
             before the answer comes, so from then on no older holder can write. A client that \
             closes the connection leaves the line.",
    )
    .parameter(resource())
    .parameter(idempotency_key())
    .body::<AcquireBody>()
    .answers(
        "201",
        json::<LeaseBody>("The lease is yours.")
            .link("renew", with_lease("renewLease"))
            .link("release", with_lease("releaseLease")),
    )
    .problems(REFUSED_BY_A_CLAIM)
    .problems([
        problems::LOCK_HELD,
        problems::KEY_SPENT,
        problems::KEY_REUSED,
    ])
    .build()
}

fn idempotency_key() -> Parameter {
    let key = text(
        "Repeats with the same body find the lease of the first request. A new UUID for every \
         acquisition; together with `Authorization` it is yours alone.",
    );
    let (least, most) = idempotency::KEY_LEN.into_inner();
    let key = key.min_length(Some(least)).max_length(Some(most));
    header("Idempotency-Key", Required::False, key)
}

fn inspect() -> Operation {
    Endpoint::new(
        "inspectLease",
        TAG,
        "See who holds it, as anybody may know it",
    )
    .parameter(resource())
    .answers("200", json::<InspectBody>("What anybody may know."))
    .problems([
        problems::MALFORMED,
        problems::LOCK_UNAVAILABLE,
        ProblemType::SERVICE_FAULT,
    ])
    .build()
}

fn renew() -> Operation {
    of_holder(
        "renewLease",
        "Renew the lease for another period, counted from now",
    )
    .body::<RenewBody>()
    .answers("200", json::<RenewedBody>("It goes on."))
    .build()
}

fn release() -> Operation {
    let released = ResponseBuilder::new().description("It is free, for whoever is next in line.");
    of_holder("releaseLease", "Release the lease")
        .describe("Sent again, it is the same.")
        .answers("204", released)
        .build()
}

/// What the holder does with its lease.
fn of_holder(id: &str, summary: &str) -> Endpoint {
    Endpoint::new(id, TAG, summary)
        .parameter(resource())
        .parameter(fencing_token(Required::True))
        .problems(REFUSED_AT_THE_EDGE)
        .problems([
            ProblemType::TOKEN_REQUIRED,
            problems::LEASE_ENDED,
            problems::LOCK_UNAVAILABLE,
            problems::LOCK_LACKS_IT,
            ProblemType::SERVICE_FAULT,
        ])
}

/// `/v1/admin/leases`
pub(super) fn list() -> PathItem {
    let list = Endpoint::new(
        "listLeases",
        OPERATORS,
        "Everything that is held or waited for",
    )
    .secured()
    .answers("200", json::<LeasesBody>("What anybody may know of each."))
    .problems([
        problems::LOCK_UNAVAILABLE,
        problems::LOCK_LACKS_IT,
        ProblemType::SERVICE_FAULT,
    ]);
    PathItem::new(HttpMethod::Get, list.build())
}

/// `/v1/admin/leases/{resource}`
pub(super) fn force() -> PathItem {
    let released = "Whoever held it, now or before, cannot write any more. Sent again, it ends the \
                    lease of whoever holds it then.";
    let force = Endpoint::new(
        "forceRelease",
        OPERATORS,
        "End the lease of whoever holds it",
    )
    .secured()
    .parameter(resource())
    .answers("200", json::<ForceReleasedBody>(released))
    .problems(REFUSED_BY_A_CLAIM)
    .problems([
        problems::MALFORMED,
        problems::LOCK_HELD,
        problems::LOCK_LACKS_IT,
    ]);
    PathItem::new(HttpMethod::Delete, force.build())
}

/// What may be in the way of a lease whose token the store is told of.
const REFUSED_BY_A_CLAIM: [ProblemType; 8] = [
    problems::LOCK_UNAVAILABLE,
    ProblemType::TOKEN_STALE,
    ProblemType::HOLDER_CONFLICT,
    ProblemType::WRONG_ISSUER,
    ProblemType::TOKEN_IMPLAUSIBLE,
    ProblemType::STORE_UNAVAILABLE,
    ProblemType::OUTCOME_UNKNOWN,
    ProblemType::SERVICE_FAULT,
];
