//! The problems of a gateway, besides those of `fenced-http`. A service that mounts the gateway may
//! use some of them in its own answers.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use fenced_http::{Problem, ProblemType};

/// 400: the request does not have the right form.
pub const MALFORMED: ProblemType = ProblemType::new(
    "request-malformed",
    StatusCode::BAD_REQUEST,
    "The request is malformed",
);
/// 422: the form of the request is right, but a value is not possible.
pub const UNPROCESSABLE: ProblemType = ProblemType::new(
    "request-unprocessable",
    StatusCode::UNPROCESSABLE_ENTITY,
    "The request cannot be processed",
);
/// 409: another client has the lease.
pub(crate) const LOCK_HELD: ProblemType =
    ProblemType::new("lock-held", StatusCode::CONFLICT, "The lock is held");
/// 421: the name in the request is not a name of this gateway.
pub(crate) const MISDIRECTED: ProblemType = ProblemType::new(
    "misdirected",
    StatusCode::MISDIRECTED_REQUEST,
    "The gateway has another name",
);
/// 409: the lease of this idempotency key has ended.
pub(crate) const KEY_SPENT: ProblemType = ProblemType::new(
    "idempotency-key-spent",
    StatusCode::CONFLICT,
    "The lease of this key has ended",
);
/// 422: this idempotency key was sent with another request before.
pub(crate) const KEY_REUSED: ProblemType = ProblemType::new(
    "idempotency-key-reused",
    StatusCode::UNPROCESSABLE_ENTITY,
    "The key belongs to another request",
);
/// 412: the lease of the token has ended.
pub(crate) const LEASE_ENDED: ProblemType = ProblemType::new(
    "lease-ended",
    StatusCode::PRECONDITION_FAILED,
    "The lease has ended",
);
/// 408: the body did not arrive in time.
pub const REQUEST_TIMEOUT: ProblemType = ProblemType::new(
    "request-timeout",
    StatusCode::REQUEST_TIMEOUT,
    "The request took too long to arrive",
);
/// 401: the client is not known to be an operator.
pub(crate) const NOT_AUTHENTICATED: ProblemType = ProblemType::new(
    "not-authenticated",
    StatusCode::UNAUTHORIZED,
    "The request needs the admin token",
);
/// 503: the lock service cannot answer now.
pub(crate) const LOCK_UNAVAILABLE: ProblemType = ProblemType::new(
    "lock-service-unavailable",
    StatusCode::SERVICE_UNAVAILABLE,
    "The lock service is not available",
);
/// 501: this kind of lock service cannot do what the request asks, for any client.
pub(crate) const LOCK_LACKS_IT: ProblemType = ProblemType::new(
    "lock-service-lacks-it",
    StatusCode::NOT_IMPLEMENTED,
    "The lock service cannot do this",
);

/// 404: there is no such path.
pub const ROUTE_UNKNOWN: ProblemType = ProblemType::new(
    "route-unknown",
    StatusCode::NOT_FOUND,
    "There is nothing at this path",
);
/// 405: the path does not have this method. The answer has an `Allow` header.
pub(crate) const METHOD_NOT_ALLOWED: ProblemType = ProblemType::new(
    "method-not-allowed",
    StatusCode::METHOD_NOT_ALLOWED,
    "The path does not know this method",
);
/// 413: the body is longer than any useful one.
pub const TOO_LARGE: ProblemType = ProblemType::new(
    "body-too-large",
    StatusCode::PAYLOAD_TOO_LARGE,
    "The body is too large",
);
/// 415: the body has another media type than JSON.
pub(crate) const MEDIA_TYPE: ProblemType = ProblemType::new(
    "media-type-unsupported",
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "The body must be application/json",
);
/// 400: any other refusal of a framework.
pub(crate) const OTHER_CLIENT_FAULT: ProblemType = ProblemType::new(
    "request-refused",
    StatusCode::BAD_REQUEST,
    "The request was refused",
);

/// The kind of problem that goes with the status of a framework's own refusal.
pub(crate) const fn of_status(status: StatusCode) -> ProblemType {
    match status {
        StatusCode::BAD_REQUEST => MALFORMED,
        StatusCode::NOT_FOUND => ROUTE_UNKNOWN,
        StatusCode::METHOD_NOT_ALLOWED => METHOD_NOT_ALLOWED,
        StatusCode::REQUEST_TIMEOUT => REQUEST_TIMEOUT,
        StatusCode::PAYLOAD_TOO_LARGE => TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => MEDIA_TYPE,
        StatusCode::UNPROCESSABLE_ENTITY => UNPROCESSABLE,
        _ => OTHER_CLIENT_FAULT,
    }
}

/// Gives a refusal of the framework (404, 405, 413) a problem document for a body.
pub(crate) fn document(response: Response) -> Response {
    let kind = of_status(response.status());
    if kind.status() != response.status() || is_problem(&response) {
        return response;
    }
    let mut document: Response = Problem::new(kind).to_response();
    if let Some(allow) = response.headers().get(header::ALLOW) {
        document.headers_mut().insert(header::ALLOW, allow.clone());
    }
    document
}

fn is_problem(response: &Response) -> bool {
    let problem = HeaderValue::from_static("application/problem+json");
    response.headers().get(header::CONTENT_TYPE) == Some(&problem)
}
