//! `X-Request-Id`: one name for a request in the client's log, in ours and in those of others.

use axum::{extract::Request, http::HeaderValue};
use tower_http::request_id::RequestId;

/// The header, in a request and in its answer.
const NAME: &str = "x-request-id";

/// The longest id that is accepted.
pub(super) const LEN_MAX: usize = 64;

/// Removes an id that is not plain, so that the request gets a new one: no client must be able to
/// forge a line of the log.
pub(super) fn only_sane(mut request: Request) -> Request {
    let mut ids = request.headers().get_all(NAME).iter();
    let is_sane = match (ids.next(), ids.next()) {
        (Some(id), None) => sane(id),
        (None, _) => true,
        (Some(_), Some(_)) => false,
    };
    if !is_sane {
        request.headers_mut().remove(NAME);
    }
    request
}

fn sane(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    (1..=LEN_MAX).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

/// The id for the log.
pub(super) fn of<B>(request: &axum::http::Request<B>) -> &str {
    let id = request.extensions().get::<RequestId>();
    let id = id.and_then(|id| id.header_value().to_str().ok());
    id.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_and_plain() {
        let longest = "x".repeat(LEN_MAX);
        for good in ["1", "9b6c5f0e-2d4a-4c1f", "Root=1-67891233:abc/+", &longest] {
            assert!(sane(&HeaderValue::from_str(good).unwrap()), "{good}");
        }
        let too_long = "x".repeat(LEN_MAX + 1);
        for bad in ["", "a b", "a\"b", "a\tb", "{}", "a,b", &too_long] {
            assert!(!sane(&HeaderValue::from_str(bad).unwrap()), "{bad}");
        }
        assert!(!sane(&HeaderValue::from_bytes(b"\xc3\xa4").unwrap()));
    }
}
