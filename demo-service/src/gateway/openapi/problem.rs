//! Problem documents: a schema for each kind, with the members that it may have.

use fenced_http::ProblemType;
use serde_json::json;
use utoipa::openapi::{
    Content, Header, Ref, RefOr, Response, ResponseBuilder, Schema,
    schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, SchemaType, Type},
};

use super::parts::{integer, request_id, text};
use crate::gateway::problems;

/// Every kind that an endpoint in the document answers with.
pub(super) const KINDS: [ProblemType; 27] = [
    ProblemType::TOKEN_REQUIRED,
    ProblemType::TOKEN_MALFORMED,
    ProblemType::TOKEN_NOT_ACCEPTED,
    ProblemType::WRONG_RESOURCE,
    ProblemType::WRONG_ISSUER,
    ProblemType::TOKEN_IMPLAUSIBLE,
    ProblemType::TOKEN_STALE,
    ProblemType::TOKEN_NOT_CLAIMED,
    ProblemType::MARK_LOST,
    ProblemType::HOLDER_CONFLICT,
    ProblemType::STORE_UNAVAILABLE,
    ProblemType::OUTCOME_UNKNOWN,
    ProblemType::SERVICE_FAULT,
    problems::MALFORMED,
    problems::UNPROCESSABLE,
    problems::ACCOUNT_UNKNOWN,
    problems::LOCK_HELD,
    problems::KEY_SPENT,
    problems::KEY_REUSED,
    problems::LEASE_ENDED,
    problems::REQUEST_TIMEOUT,
    problems::NOT_AUTHENTICATED,
    problems::LOCK_UNAVAILABLE,
    problems::LOCK_LACKS_IT,
    problems::TOO_LARGE,
    problems::MISDIRECTED,
    problems::MEDIA_TYPE,
];

/// What the schema of a kind is called.
pub(super) fn name(kind: ProblemType) -> String {
    format!("Problem.{}", kind.slug())
}

/// The document of one kind. No member is left out, so none may come besides.
pub(super) fn schema(kind: ProblemType) -> RefOr<Schema> {
    let is = |value: serde_json::Value, kind: Type| {
        ObjectBuilder::new()
            .schema_type(SchemaType::new(kind))
            .enum_values(Some([value]))
    };
    let mut object = ObjectBuilder::new()
        .description(Some(kind.title()))
        .property("type", is(json!(kind.uri()), Type::String))
        .property("title", is(json!(kind.title()), Type::String))
        .property("status", is(json!(kind.status().as_u16()), Type::Integer))
        .required("type")
        .required("title")
        .required("status")
        .property(
            "detail",
            text("What happened this time and what to do, for people."),
        )
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    for (name, schema) in members(kind) {
        object = object.property(name, schema);
    }
    object.into()
}

/// What programs may read besides `type` and `status`.
fn members(kind: ProblemType) -> Vec<(&'static str, ObjectBuilder)> {
    let resource = || ("resource", text("The resource whose token was refused."));
    let token = || ("token", integer("The token that was refused.", 1));
    match kind {
        ProblemType::WRONG_RESOURCE => vec![
            (
                "token_resource",
                text("The resource that the token is for."),
            ),
            (
                "request_resource",
                text("The resource that the request is about, if it is the name of one."),
            ),
        ],
        ProblemType::WRONG_ISSUER => vec![resource()],
        ProblemType::TOKEN_IMPLAUSIBLE
        | ProblemType::TOKEN_STALE
        | ProblemType::TOKEN_NOT_CLAIMED
        | ProblemType::MARK_LOST
        | ProblemType::HOLDER_CONFLICT => vec![resource(), token()],
        ProblemType::OUTCOME_UNKNOWN => vec![("outcome", text("Always `unknown`."))],
        problems::LOCK_HELD => {
            vec![
                ("resource", text("The resource that somebody else holds.")),
                (
                    "retry_after_ms",
                    integer("When the lease ends, if nobody renews it.", 0),
                ),
            ]
        }
        problems::ACCOUNT_UNKNOWN => vec![("id", text("The account that is meant."))],
        _ => vec![],
    }
}

/// The response with one status. All kinds have this status.
pub(super) fn response(kinds: &[ProblemType]) -> Response {
    let titles: Vec<_> = kinds.iter().map(|kind| kind.title()).collect();
    let one_of = kinds.iter().fold(OneOfBuilder::new(), |one_of, kind| {
        one_of.item(Ref::from_schema_name(name(*kind)))
    });
    let media_type = "application/problem+json";
    let mut response = ResponseBuilder::new()
        .description(titles.join("; or: "))
        .header("X-Request-Id", request_id())
        .header("Cache-Control", says("Never cached: `no-store`."))
        .content(media_type, Content::new(Some(one_of)));
    if kinds.iter().copied().any(may_ask_to_wait) {
        let retry_after = says("When to try again, in whole seconds, if that is known.");
        response = response.header("Retry-After", retry_after);
    }
    if kinds.contains(&ProblemType::TOKEN_STALE) {
        let high_water = says("The greatest token that the store has seen.");
        response = response.header("Fencing-High-Water", high_water);
    }
    if kinds.contains(&problems::NOT_AUTHENTICATED) {
        response = response.header("WWW-Authenticate", says("`Bearer`"));
    }
    response.build()
}

fn may_ask_to_wait(kind: ProblemType) -> bool {
    [
        problems::LOCK_HELD,
        problems::LOCK_UNAVAILABLE,
        ProblemType::STORE_UNAVAILABLE,
    ]
    .contains(&kind)
}

fn says(what: &str) -> Header {
    let mut header = Header::new(ObjectBuilder::new().schema_type(Type::String));
    header.description = Some(what.to_owned());
    header
}
