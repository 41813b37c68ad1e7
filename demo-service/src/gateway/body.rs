//! Extractors whose refusals are problem documents.

use axum::{
    Json, RequestPartsExt,
    extract::{FromRequest, FromRequestParts, Path, Request, rejection::JsonRejection},
    http::request::Parts,
};
use fenced_store::http::Problem;
use serde::de::DeserializeOwned;

use super::{error::ApiError, problems};

/// A JSON body.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Json(body) = Json::from_request(request, state)
            .await
            .map_err(json_problem)?;
        Ok(Self(body))
    }
}

fn json_problem(rejection: JsonRejection) -> Problem {
    Problem::new(problems::of_status(rejection.status())).detail(rejection.body_text())
}

/// The single parameter of a path, percent-decoded.
#[derive(Debug)]
pub(super) struct Segment(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match parts.extract::<Path<String>>().await {
            Ok(Path(segment)) => Ok(Self(segment)),
            Err(rejection) => Err(Problem::new(problems::MALFORMED)
                .detail(rejection.body_text())
                .into()),
        }
    }
}
