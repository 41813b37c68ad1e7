//! Extractors whose refusals are problem documents.

use std::{fmt, marker::PhantomData};

use axum::{
    Json, RequestPartsExt,
    extract::{FromRef, FromRequest, FromRequestParts, Path, Request, rejection::JsonRejection},
    http::request::Parts,
};
use fenced_http::Problem;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};
use tokio::time::timeout;

use crate::{error::ApiError, problems, time_limit::TimeLimit};

/// A JSON body. If it does not arrive in time, the answer is 408, and no work was begun.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "handlers take it apart")]
pub struct Body<T>(pub T);

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
    TimeLimit: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let limit = TimeLimit::from_ref(state).get();
        let body = timeout(limit, Json::from_request(request, state)).await;
        let Json(Object(body)) = body.map_err(|_| too_late())?.map_err(json_problem)?;
        Ok(Self(body))
    }
}

/// A value that is read only from a JSON object. By itself, serde also accepts an array of the
/// members of a struct, in the order of their declaration.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData)).map(Self)
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

fn json_problem(rejection: JsonRejection) -> Problem {
    Problem::new(problems::of_status(rejection.status())).detail(rejection.body_text())
}

fn too_late() -> Problem {
    Problem::new(problems::REQUEST_TIMEOUT)
        .detail("the body did not arrive in time and nothing was done: send the request again")
}

/// The single parameter of a path, percent-decoded; or all of them, in their order.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "handlers take it apart")]
pub struct Segment<T = String>(pub T);

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequestParts<S> for Segment<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match parts.extract::<Path<T>>().await {
            Ok(Path(segment)) => Ok(Self(segment)),
            Err(rejection) => Err(Problem::new(problems::MALFORMED)
                .detail(rejection.body_text())
                .into()),
        }
    }
}
