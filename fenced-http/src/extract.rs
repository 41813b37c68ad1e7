//! [`Fenced`] as an extractor.

use axum_core::{
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse, Response},
};
use http::request::Parts;

use crate::{Fenced, Problem, ProblemType, Rejection, fenced::NoToken};

/// The token of the request. Behind an optional layer a request without a token is refused here.
impl<S: Send + Sync> FromRequestParts<S> for Fenced {
    type Rejection = FencedRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, FencedRejection> {
        fenced(parts)?.ok_or_else(|| Rejection::Missing.into())
    }
}

/// The token of the request, if there is one. Without a layer on the route the extractor fails.
impl<S: Send + Sync> OptionalFromRequestParts<S> for Fenced {
    type Rejection = FencedRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, FencedRejection> {
        fenced(parts)
    }
}

/// The token that the layer has left for the handler.
fn fenced(parts: &Parts) -> Result<Option<Fenced>, FencedRejection> {
    let fenced = parts.extensions.get::<Fenced>();
    if fenced.is_none() && parts.extensions.get::<NoToken>().is_none() {
        return Err(FencedRejection::LayerMissing);
    }
    Ok(fenced.cloned())
}

/// The reason why a handler with a [`Fenced`] argument is not called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FencedRejection {
    /// No [`FencingLayer`](crate::FencingLayer) on this route looks at this method, so the token is
    /// unchecked: a fault of the service, 500.
    #[error("no FencingLayer on this route looks at this method")]
    LayerMissing,
    /// The handler needs a token and the request, which passed an optional layer, has none.
    #[error(transparent)]
    Refused(#[from] Rejection),
}

impl IntoResponse for FencedRejection {
    fn into_response(self) -> Response {
        match self {
            Self::LayerMissing => {
                tracing::error!("{self}");
                Problem::new(ProblemType::SERVICE_FAULT)
                    .detail(self.to_string())
                    .into_response()
            }
            Self::Refused(rejection) => rejection.into_response(),
        }
    }
}
