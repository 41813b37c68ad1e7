//! The token of a request on a route without a layer.

use std::{marker::PhantomData, ops::Deref};

use axum_core::extract::{FromRef, FromRequestParts, OptionalFromRequestParts};
use http::request::Parts;

use super::{Fenced, Rejection, TokenVerifier, policy::keep_out_of_logs};

/// A [`Fenced`] that the extractor itself has had checked, by a verifier out of the router's
/// state: for a route without a [`FencingLayer`](super::FencingLayer).
///
/// Nobody has compared its resource with what the request is about: write to the one that it is
/// for, or call [`Fenced::must_be_about`]. And nobody looks at the response: the high-water mark is
/// not disclosed, a `Fencing-Accepted` that the handler sets by hand stays, and `Vary` is for the
/// handler to set if a cache may keep its answers.
///
#[cfg_attr(all(feature = "axum", feature = "sqlite"), doc = "```")]
#[cfg_attr(not(all(feature = "axum", feature = "sqlite")), doc = "```ignore")]
/// use axum::{Router, extract::{FromRef, State}, response::Result, routing::put};
/// use fenced_store::{Receipt, SqliteFencedStore, http::{FencedFromState, Unsigned}};
///
/// #[derive(Clone)]
/// struct App {
///     store: SqliteFencedStore,
///     verifier: Unsigned,
/// }
///
/// impl FromRef<App> for SqliteFencedStore {
///     fn from_ref(app: &App) -> Self {
///         app.store.clone()
///     }
/// }
///
/// impl FromRef<App> for Unsigned {
///     fn from_ref(app: &App) -> Self {
///         app.verifier.clone()
///     }
/// }
///
/// async fn touch(
///     State(store): State<SqliteFencedStore>,
///     fenced: FencedFromState<Unsigned>,
/// ) -> Result<Receipt> {
///     let tx = store.begin(&*fenced).await?;
///     Ok(tx.commit().await?)
/// }
///
/// fn router(app: App) -> Router {
///     Router::new().route("/touch", put(touch)).with_state(app)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedFromState<V> {
    fenced: Fenced,
    verifier: PhantomData<fn() -> V>,
}

impl<V> FencedFromState<V> {
    /// The token alone.
    #[must_use]
    pub fn into_inner(self) -> Fenced {
        self.fenced
    }
}

impl<V> Deref for FencedFromState<V> {
    type Target = Fenced;

    fn deref(&self) -> &Fenced {
        &self.fenced
    }
}

/// A request without a token is refused with 428.
impl<S, V> FromRequestParts<S> for FencedFromState<V>
where
    S: Send + Sync,
    V: TokenVerifier + FromRef<S>,
{
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Rejection> {
        fenced(parts, state)?.ok_or(Rejection::Missing)
    }
}

/// A request without a token is let in. One that is there must be right all the same.
impl<S, V> OptionalFromRequestParts<S> for FencedFromState<V>
where
    S: Send + Sync,
    V: TokenVerifier + FromRef<S>,
{
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Option<Self>, Rejection> {
        fenced(parts, state)
    }
}

fn fenced<S, V>(parts: &mut Parts, state: &S) -> Result<Option<FencedFromState<V>>, Rejection>
where
    V: TokenVerifier + FromRef<S>,
{
    keep_out_of_logs(&mut parts.headers);
    let fenced = Fenced::from_headers(&parts.headers, &V::from_ref(state))?;
    Ok(fenced.map(|fenced| FencedFromState {
        fenced,
        verifier: PhantomData,
    }))
}
