//! `X-Request-Id`: one name for a request in the log of the client, of the gateway and of other
//! services.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

/// The header, in a request and in its answer.
pub(crate) const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is accepted.
const LEN_MAX: usize = 64;

/// The id of a request: the id in its header if that is plain, or else a new id. A client must not
/// be able to forge a line of the log.
pub(crate) fn of(headers: &HeaderMap) -> HeaderValue {
    let mut ids = headers.get_all(&NAME).iter();
    match (ids.next(), ids.next()) {
        (Some(id), None) if sane(id) => id.clone(),
        _ => fresh(),
    }
}

fn fresh() -> HeaderValue {
    let id = Uuid::new_v4().hyphenated();
    let id = HeaderValue::from_str(id.encode_lower(&mut Uuid::encode_buffer()));
    id.unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

fn sane(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    (1..=LEN_MAX).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: an id that forges a line of the log, or fills it.
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
