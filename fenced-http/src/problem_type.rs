use http::StatusCode;

/// A kind of problem, which is the `type` member of a problem document (RFC 9457).
///
/// The `type` is the stable name for programs. Several kinds may have the same status. Every kind
/// has a section in `docs/errors.md` with its meaning and with the next step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProblemType {
    slug: &'static str,
    status: StatusCode,
    title: &'static str,
}

impl ProblemType {
    /// 428: the request has no token.
    pub const TOKEN_REQUIRED: Self = Self::new(
        "fencing-token-required",
        StatusCode::PRECONDITION_REQUIRED,
        "A fencing token is required",
    );
    /// 400: the token header does not have the right form, or there are several such headers.
    pub const TOKEN_MALFORMED: Self = Self::new(
        "fencing-token-malformed",
        StatusCode::BAD_REQUEST,
        "The fencing token is malformed",
    );
    /// 403: the token is not authentic.
    pub const TOKEN_NOT_ACCEPTED: Self = Self::new(
        "fencing-token-not-accepted",
        StatusCode::FORBIDDEN,
        "The fencing token is not accepted",
    );
    /// 403: the token is for another resource.
    pub const WRONG_RESOURCE: Self = Self::new(
        "fencing-token-wrong-resource",
        StatusCode::FORBIDDEN,
        "The fencing token is for another resource",
    );
    /// 403: the token comes from another lock service.
    pub const WRONG_ISSUER: Self = Self::new(
        "fencing-token-wrong-issuer",
        StatusCode::FORBIDDEN,
        "The fencing token comes from another lock service",
    );
    /// 403: the token is greater than any that can have been issued.
    pub const TOKEN_IMPLAUSIBLE: Self = Self::new(
        "fencing-token-implausible",
        StatusCode::FORBIDDEN,
        "The fencing token is implausible",
    );
    /// 412: a later holder has claimed the resource.
    pub const TOKEN_STALE: Self = Self::new(
        "fencing-token-stale",
        StatusCode::PRECONDITION_FAILED,
        "The fencing token is stale",
    );
    /// 412: the grant was never claimed in the store.
    pub const TOKEN_NOT_CLAIMED: Self = Self::new(
        "fencing-token-not-claimed",
        StatusCode::PRECONDITION_FAILED,
        "The fencing token was not claimed",
    );
    /// 412: the store has forgotten the claim.
    pub const MARK_LOST: Self = Self::new(
        "fencing-mark-lost",
        StatusCode::PRECONDITION_FAILED,
        "The store has lost the claim",
    );
    /// 409: two holders have the same token.
    pub const HOLDER_CONFLICT: Self = Self::new(
        "fencing-token-holder-conflict",
        StatusCode::CONFLICT,
        "Two holders have the same fencing token",
    );
    /// 503: the store cannot answer now; nothing was written.
    pub const STORE_UNAVAILABLE: Self = Self::new(
        "store-unavailable",
        StatusCode::SERVICE_UNAVAILABLE,
        "The store is not available",
    );
    /// 504: the write may or may not have been made.
    pub const OUTCOME_UNKNOWN: Self = Self::new(
        "outcome-unknown",
        StatusCode::GATEWAY_TIMEOUT,
        "The outcome of the write is unknown",
    );
    /// 500: the service itself is at fault; nothing was written, unless the problem has
    /// `"outcome": "unknown"`.
    pub const SERVICE_FAULT: Self = Self::new(
        "fencing-service-fault",
        StatusCode::INTERNAL_SERVER_ERROR,
        "The service has a fault",
    );

    /// All kinds of this crate.
    pub const ALL: &'static [Self] = &[
        Self::TOKEN_REQUIRED,
        Self::TOKEN_MALFORMED,
        Self::TOKEN_NOT_ACCEPTED,
        Self::WRONG_RESOURCE,
        Self::WRONG_ISSUER,
        Self::TOKEN_IMPLAUSIBLE,
        Self::TOKEN_STALE,
        Self::TOKEN_NOT_CLAIMED,
        Self::MARK_LOST,
        Self::HOLDER_CONFLICT,
        Self::STORE_UNAVAILABLE,
        Self::OUTCOME_UNKNOWN,
        Self::SERVICE_FAULT,
    ];

    /// The prefix of the `type` of every kind.
    pub(crate) const URI_PREFIX: &'static str = "urn:palisade:problem:";

    /// A kind for your own service, so that all problems of the service look alike.
    #[must_use]
    pub const fn new(slug: &'static str, status: StatusCode, title: &'static str) -> Self {
        Self {
            slug,
            status,
            title,
        }
    }

    /// The last part of the `type`, and the name of its section.
    #[must_use]
    pub const fn slug(self) -> &'static str {
        self.slug
    }

    /// The status of the response.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.status
    }

    /// The `title`: for people, the same for all problems of this kind.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.title
    }

    /// The `type`.
    #[must_use]
    pub fn uri(self) -> String {
        format!("{}{}", Self::URI_PREFIX, self.slug)
    }
}
