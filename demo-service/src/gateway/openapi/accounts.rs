use fenced_store::http::ProblemType;
use utoipa::openapi::{
    HttpMethod, PathItem, Required,
    path::{Operation, Parameter, PathItemBuilder},
};

use super::parts::{
    Endpoint, REFUSED_AT_THE_EDGE, REFUSED_BY_THE_STORE, accepted, account, etag, fencing_token,
    fencing_token_to, header, json, no_store, text,
};
use crate::gateway::{
    problems,
    wire::{AccountBody, BalanceBody, TransferBody, TransferredBody},
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
        .header("ETag", etag())
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
        .header("ETag", etag())
        .header("Fencing-Accepted", accepted())
        .header("Cache-Control", no_store());
    Endpoint::new(
        "writeAccount",
        TAG,
        "Set the balance of an account, or open it",
    )
    .describe(
        "The store compares the token and writes in one transaction. The fence comes first: \
             whoever passes it holds the lease, and then the conditions are looked at.",
    )
    .parameter(account())
    .parameter(fencing_token(Required::True))
    .parameter(if_match())
    .parameter(if_none_match())
    .body::<BalanceBody>()
    .answers("200", written)
    .problems(REFUSED_AT_THE_EDGE)
    .problems(REFUSED_BY_THE_STORE)
    .problems([ProblemType::TOKEN_REQUIRED, problems::VERSION_MISMATCH])
    .build()
}

/// `/v1/accounts/{id}/transfers`
pub(super) fn transfers() -> PathItem {
    let made = json::<TransferredBody>("It is made.")
        .header("Fencing-Accepted", accepted())
        .header("Cache-Control", no_store());
    let transfer = Endpoint::new(
        "transfer",
        TAG,
        "Move money from this account to another one",
    )
    .describe(
        "One transaction under the tokens of both accounts; if one is refused, `resource` says \
             which. Acquire both leases in the order of their names, so that two clients do not \
             wait for each other. Sent twice it is made twice.",
    )
    .parameter(account())
    .parameter(fencing_token(Required::True))
    .parameter(fencing_token_to())
    .body::<TransferBody>()
    .answers("200", made)
    .problems(REFUSED_AT_THE_EDGE)
    .problems(REFUSED_BY_THE_STORE)
    .problems([
        ProblemType::TOKEN_REQUIRED,
        problems::ACCOUNT_UNKNOWN,
        problems::BALANCE_OUT_OF_RANGE,
    ]);
    PathItem::new(HttpMethod::Post, transfer.build())
}

/// `/v1/unfenced/accounts/{id}`
pub(super) fn unfenced() -> PathItem {
    let account_body = || json::<AccountBody>("The account.").header("ETag", etag());
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
    .parameter(if_match())
    .parameter(if_none_match())
    .body::<BalanceBody>()
    .answers("200", account_body())
    .problems(failures)
    .problems([ProblemType::OUTCOME_UNKNOWN, problems::VERSION_MISMATCH]);
    PathItemBuilder::new()
        .operation(HttpMethod::Get, read.build())
        .operation(HttpMethod::Put, write.build())
        .build()
}

/// `/v1/unfenced/accounts/{id}/transfers`
pub(super) fn unfenced_transfers() -> PathItem {
    let transfer = Endpoint::new(
        "transferUnfenced",
        UNFENCED,
        "Move money from this account to another one",
    )
    .describe("One transaction, and no token: for comparison.")
    .parameter(account())
    .body::<TransferBody>()
    .answers("200", json::<TransferredBody>("It is made."))
    .problems([
        ProblemType::STORE_UNAVAILABLE,
        ProblemType::OUTCOME_UNKNOWN,
        ProblemType::SERVICE_FAULT,
        problems::ACCOUNT_UNKNOWN,
        problems::BALANCE_OUT_OF_RANGE,
    ]);
    PathItem::new(HttpMethod::Post, transfer.build())
}

fn if_match() -> Parameter {
    let schema =
        text("Write only over this version: the `ETag` of a read, or `*`.").min_length(Some(1));
    header("If-Match", Required::False, schema)
}

fn if_none_match() -> Parameter {
    let schema =
        text("Write only over another version than these; with `*`, only open an account.")
            .min_length(Some(1));
    header("If-None-Match", Required::False, schema)
}
