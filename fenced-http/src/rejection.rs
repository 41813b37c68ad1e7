use bytes::Bytes;
use http::Response;
use lock_core::{InvalidName, Issuer, ResourceName};

use crate::{Malformed, Problem, ProblemType};

/// The reason why the layer has refused a request. The handler and the store have not seen the
/// request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// There is no token: 428.
    #[error("this request needs a Fencing-Token header: acquire the lock and send its token")]
    Missing,
    /// There are several headers, and it is not clear which of them counts: 400.
    #[error("the Fencing-Token header is given more than once")]
    Repeated,
    /// The value does not have the form of a token: 400.
    #[error("malformed Fencing-Token header: {0}")]
    Malformed(#[from] Malformed),
    /// The token is not authentic: 403. The message deliberately does not name the fault.
    #[error("the fencing token is not accepted")]
    NotAccepted,
    /// The token is signed and this service checks no signatures: 403.
    #[error("this service takes unsigned fencing tokens only, this one is signed")]
    SignatureNotChecked,
    /// The token comes from another lock service: 403.
    #[error(
        "the fencing token comes from another lock service: this service accepts only tokens of \
         \"{issuer}\""
    )]
    WrongIssuer {
        /// The lock service whose tokens are accepted.
        issuer: Issuer,
    },
    /// The token was issued for another resource than that of the request: 403.
    #[error("{}", wrong_resource(token_resource, request_resource.as_ref()))]
    WrongResource {
        /// The resource for which the token was issued.
        token_resource: ResourceName,
        /// The resource of the request, if the request itself names it in its path or in a header.
        /// A name from a function of the service is omitted, because it may contain more than the
        /// client knows.
        request_resource: Option<ResourceName>,
    },
    /// The token is so great that no lock service can have issued it: 403.
    #[error("the fencing token is too far ahead to have been issued")]
    Implausible,
}

impl Rejection {
    /// The kind of problem in the response.
    #[must_use]
    pub const fn problem_type(&self) -> ProblemType {
        match self {
            Self::Missing => ProblemType::TOKEN_REQUIRED,
            Self::Repeated | Self::Malformed(_) => ProblemType::TOKEN_MALFORMED,
            Self::NotAccepted | Self::SignatureNotChecked => ProblemType::TOKEN_NOT_ACCEPTED,
            Self::WrongIssuer { .. } => ProblemType::WRONG_ISSUER,
            Self::WrongResource { .. } => ProblemType::WRONG_RESOURCE,
            Self::Implausible => ProblemType::TOKEN_IMPLAUSIBLE,
        }
    }

    /// The response.
    pub(crate) fn to_response<B: From<Bytes>>(&self) -> Response<B> {
        Problem::from(self).to_response()
    }
}

/// The problem of a rejection. A caller may add further members.
impl From<&Rejection> for Problem {
    fn from(rejection: &Rejection) -> Self {
        let problem = Self::new(rejection.problem_type()).detail(rejection.to_string());
        let Rejection::WrongResource {
            token_resource,
            request_resource,
        } = rejection
        else {
            return problem;
        };
        let problem = problem.with("token_resource", token_resource.as_str());
        match request_resource {
            Some(resource) => problem.with("request_resource", resource.as_str()),
            None => problem,
        }
    }
}

impl From<InvalidName> for Rejection {
    fn from(error: InvalidName) -> Self {
        Self::Malformed(error.into())
    }
}

fn wrong_resource(token: &ResourceName, request: Option<&ResourceName>) -> String {
    let request = request.map_or("another resource", ResourceName::as_str);
    format!(
        "the fencing token is for {token}, and the request is about {request}: acquire the lock of \
         that resource and send its token"
    )
}
