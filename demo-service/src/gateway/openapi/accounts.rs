use fenced_http::ProblemType;
use utoipa::openapi::{
    HttpMethod, PathItem, Required,
    path::{Operation, PathItemBuilder},
};

use super::{
    endpoint::Endpoint,
    parts::{
        REFUSED_AT_THE_EDGE, REFUSED_BY_THE_STORE, accepted, account, fencing_token, json, no_store,
    },
};
use crate::gateway::{
    problems,
    wire::{AccountBody, BalanceBody},
};

const TAG: &str = "accounts";
const UNFENCED: &str = "without fencing";

/// `/v1/accounts/{id}`
pub(super) fn item() -> PathItem {
    PathItemBuilder::new()
        .operation(HttpMethod::Get, read())
        .operation(HttpMethod::Put, write())
        .build()
}

fn read() -> Operation {
    let account_body = json::<AccountBody>("The account.")
        .header("Fencing-Accepted", accepted())
        .header("Cache-Control", no_store());
    Endpoint::new("readAccount", TAG, "Read an account")
        .describe("With a token the read is fenced: who has lost its lease learns it here.")
        .parameter(account())
        .parameter(fencing_token(Required::False))
        .answers("200", account_body)
        .problems(REFUSED_AT_THE_EDGE)
        .problems(REFUSED_BY_THE_STORE)
        .problems([problems::MALFORMED, problems::ACCOUNT_UNKNOWN])
        .build()
}

fn write() -> Operation {
    let written = json::<AccountBody>("It is written.")
        .header("Fencing-Accepted", accepted())
        .header("Cache-Control", no_store());
    Endpoint::new(
        "writeAccount",
        TAG,
        "Set the balance of an account, or open it",
    )
    .describe("The store compares the token and writes in one transaction.")
    .parameter(account())
    .parameter(fencing_token(Required::True))
    .body::<BalanceBody>()
    .answers("200", written)
    .problems(REFUSED_AT_THE_EDGE)
    .problems(REFUSED_BY_THE_STORE)
    .problems([ProblemType::TOKEN_REQUIRED])
    .build()
}

/// `/v1/unfenced/accounts/{id}`
pub(super) fn unfenced() -> PathItem {
    let account_body = || json::<AccountBody>("The account.");
    let failures = [
        problems::MALFORMED,
        ProblemType::STORE_UNAVAILABLE,
        ProblemType::SERVICE_FAULT,
    ];
    let read = Endpoint::new("readAccountUnfenced", UNFENCED, "Read an account")
        .parameter(account())
        .answers("200", account_body())
        .problems(failures)
        .problems([problems::ACCOUNT_UNKNOWN]);
    let write = Endpoint::new(
        "writeAccountUnfenced",
        UNFENCED,
        "Set the balance of an account",
    )
    .describe("Whoever writes last wins, holding a lease or not: for comparison.")
    .parameter(account())
    .body::<BalanceBody>()
    .answers("200", account_body())
    .problems(failures)
    .problems([ProblemType::OUTCOME_UNKNOWN]);
    PathItemBuilder::new()
        .operation(HttpMethod::Get, read.build())
        .operation(HttpMethod::Put, write.build())
        .build()
}
