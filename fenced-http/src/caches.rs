//! Headers that say how a cache between client and service may use an answer.

use http::{
    HeaderMap, HeaderValue,
    header::{CACHE_CONTROL, VARY},
};

/// Sets `Vary`, because a request with another token, or with none, may get another answer.
pub(crate) fn vary_by_token(headers: &mut HeaderMap) {
    headers.append(VARY, FENCING_TOKEN.clone());
}

/// Sets `Cache-Control: no-store`, because a client that got the answer from a cache would take it
/// for the answer to its own request.
pub(crate) fn keep_out(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, NO_STORE.clone());
}

/// The value is made once, because each new value is checked byte by byte.
static FENCING_TOKEN: HeaderValue = HeaderValue::from_static("fencing-token");

static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
