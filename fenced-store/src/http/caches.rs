//! What a cache between client and service may do with an answer.

use http::{
    HeaderMap, HeaderValue,
    header::{CACHE_CONTROL, VARY},
};

/// Another token may get another answer, and a request without a token, too.
pub(super) fn vary_by_token(headers: &mut HeaderMap) {
    headers.append(VARY, FENCING_TOKEN.clone());
}

/// Whoever is given the answer later would take it for one to its own request.
pub(super) fn keep_out(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, NO_STORE.clone());
}

/// Made once: a value is checked byte by byte when it is made.
static FENCING_TOKEN: HeaderValue = HeaderValue::from_static("fencing-token");

static NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
