//! Headers that say how a cache between client and service may use an answer.

use http::{
    HeaderMap, HeaderValue,
    header::{CACHE_CONTROL, VARY},
};

/// A request with another token, or with none, may get another answer.
pub(crate) fn vary_by_token(headers: &mut HeaderMap) {
    headers.append(VARY, FENCING_TOKEN.clone());
}

/// A client that got the answer from a cache would take it for the answer to its own request.
pub(crate) fn keep_out(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, NO_STORE.clone());
}

/// Made once: a value is checked byte by byte when it is made.
static FENCING_TOKEN: HeaderValue = HeaderValue::from_static("fencing-token");

static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
