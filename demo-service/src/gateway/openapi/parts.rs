//! What the descriptions of the endpoints are put together from.

use fenced_http::ProblemType;
use lock_core::ResourceName;
use utoipa::{
    ToSchema,
    openapi::{
        Content, Header, HeaderBuilder, Ref, Required, ResponseBuilder,
        link::{Link, LinkBuilder},
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Type},
    },
};

use crate::gateway::{accounts, request_id};

/// The value of a `Fencing-Token`, as strictly as it is read.
const FENCING_TOKEN: &str = concat!(
    r"^[1-9][0-9]{0,14}(;(res|iss|hld|exp|kid|sig)=(",
    r#""[!#-\[\]-~]+""#,
    r"|[1-9][0-9]{0,14}|[A-Za-z][-A-Za-z0-9_.]*|:[A-Za-z0-9+/=]+:))+$",
);

/// What the layer in front of a fenced route refuses with.
pub(super) const REFUSED_AT_THE_EDGE: [ProblemType; 5] = [
    ProblemType::TOKEN_MALFORMED,
    ProblemType::TOKEN_NOT_ACCEPTED,
    ProblemType::WRONG_RESOURCE,
    ProblemType::WRONG_ISSUER,
    ProblemType::TOKEN_IMPLAUSIBLE,
];

/// What the store refuses a token with, and how it fails.
pub(super) const REFUSED_BY_THE_STORE: [ProblemType; 8] = [
    ProblemType::TOKEN_STALE,
    ProblemType::TOKEN_NOT_CLAIMED,
    ProblemType::MARK_LOST,
    ProblemType::HOLDER_CONFLICT,
    ProblemType::WRONG_ISSUER,
    ProblemType::STORE_UNAVAILABLE,
    ProblemType::OUTCOME_UNKNOWN,
    ProblemType::SERVICE_FAULT,
];

/// A response with a JSON body.
pub(super) fn json<T: ToSchema>(description: &str) -> ResponseBuilder {
    let content = Content::new(Some(Ref::from_schema_name(T::name())));
    ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
}

/// A response with text.
pub(super) fn plain(description: &str, media_type: &str) -> ResponseBuilder {
    let content = Content::new(Some(ObjectBuilder::new().schema_type(Type::String)));
    ResponseBuilder::new()
        .description(description)
        .content(media_type, content)
}

pub(super) fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(description))
}

pub(super) fn integer(description: &str, minimum: u64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(minimum))
        .description(Some(description))
}

pub(super) fn resource() -> Parameter {
    let description = "The name of the resource, percent-encoded where a path needs it.";
    path_parameter("resource", resource_name(description))
}

fn resource_name(description: &str) -> ObjectBuilder {
    text(description)
        .min_length(Some(1))
        .max_length(Some(ResourceName::MAX_LEN))
        .pattern(Some("^[!#-\\[\\]-~]+$"))
        .examples(["account:42"])
}

pub(super) fn account() -> Parameter {
    let schema = text("The id of the account; its resource is `account:{id}`.")
        .min_length(Some(1))
        .max_length(Some(accounts::ID_LEN_MAX))
        .pattern(Some("^[-A-Za-z0-9_.]+$"))
        .examples(["42"]);
    path_parameter("id", schema)
}

pub(super) fn fencing_token(required: Required) -> Parameter {
    header(
        "Fencing-Token",
        required,
        token_schema("The `fencing_token` of a lease, as it is."),
    )
}

fn token_schema(description: &str) -> ObjectBuilder {
    text(description)
        .max_length(Some(fenced_http::FencingHeader::MAX_LEN))
        .pattern(Some(FENCING_TOKEN))
}

pub(super) fn header(name: &str, required: Required, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(required)
        .schema(Some(schema))
        .build()
}

fn path_parameter(name: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(schema))
        .build()
}

pub(super) fn request_id_parameter() -> Parameter {
    let schema = text("A name for this request in the log, which the answer repeats.")
        .max_length(Some(request_id::LEN_MAX));
    header("X-Request-Id", Required::False, schema)
}

pub(super) fn request_id() -> Header {
    let schema = text("The name of this request in the log.").min_length(Some(1));
    HeaderBuilder::new().schema(Some(schema)).build()
}

pub(super) fn accepted() -> Header {
    let schema = integer(
        "The token that the store compared and accepted. A 2xx without it was not fenced.",
        1,
    );
    HeaderBuilder::new().schema(Some(schema)).build()
}

/// Beside `Fencing-Accepted`.
pub(super) fn no_store() -> Header {
    let schema = text("`no-store`: what was accepted may not be by the next time.");
    HeaderBuilder::new().schema(Some(schema)).build()
}

/// To an endpoint that takes the lease that a response has brought.
pub(super) fn with_lease(operation: &str) -> Link {
    LinkBuilder::new()
        .operation_id(operation)
        .parameter("resource", "$request.path.resource")
        .parameter("Fencing-Token", "$response.body#/fencing_token")
        .build()
}
