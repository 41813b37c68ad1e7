use std::ops::RangeInclusive;

use axum::http::{HeaderMap, HeaderName, header};
use fenced_store::http::{Problem, signed::Secret};
use hmac::{Hmac, KeyInit, Mac};
use lock_core::{Holder, Owner, ResourceName};
use sha2::Sha256;
use tokio::sync::watch;

use super::problems;

/// The request header that makes a repeated acquire find its lease again.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How many bytes a key has: enough to be nobody else's.
pub(super) const KEY_LEN: RangeInclusive<usize> = 16..=255;

/// Who repeats a request is the same owner, at whichever gateway it arrives.
///
/// The owner follows from the key, the resource, the caller's `Authorization` and a secret, so no
/// gateway has to remember anything, and nobody can compute the owner of a key that was guessed.
///
/// It is the secret of the moment: after a change of keys a repeated request is somebody else's.
#[derive(Clone)]
pub(super) struct Idempotency(watch::Receiver<Secret>);

impl Idempotency {
    /// Gateways with the same secret know each other's keys. Without one, this gateway knows only
    /// its own.
    pub(super) fn new(secret: Option<watch::Receiver<Secret>>) -> Self {
        // Whoever has the other end may be gone: the last secret stays.
        Self(secret.unwrap_or_else(|| watch::Sender::new(Secret::random()).subscribe()))
    }

    fn mac(&self) -> Hmac<Sha256> {
        let secret = self.0.borrow().expose();
        // Filled up with zeros, as RFC 2104 has it; a secret in base64 is shorter than a block.
        let mut block = [0; 64];
        let length = std::cmp::min(secret.len(), block.len());
        block[..length].copy_from_slice(&secret.as_bytes()[..length]);
        Hmac::new(&block.into())
    }

    /// The owner that the request acquires as; none if it has no key.
    ///
    /// # Errors
    /// 400 if there are several keys, or one that is too short to be nobody else's.
    pub(super) fn owner(
        &self,
        headers: &HeaderMap,
        resource: &ResourceName,
    ) -> Result<Option<Owner>, Problem> {
        let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
        let key = match (keys.next(), keys.next()) {
            (None, _) => return Ok(None),
            (Some(key), None) if KEY_LEN.contains(&key.len()) => key,
            _ => {
                let detail = "send one Idempotency-Key of 16 to 255 bytes, such as a new UUID";
                return Err(Problem::new(problems::MALFORMED).detail(detail));
            }
        };
        let caller = headers.get(header::AUTHORIZATION);
        let caller = caller.map_or(&b""[..], |caller| caller.as_bytes());
        let mut mac = self.mac();
        for part in [key.as_bytes(), caller, resource.as_str().as_bytes()] {
            mac.update(&part.len().to_be_bytes());
            mac.update(part);
        }
        let tag = mac.finalize().into_bytes();
        let holder = u128::from_be_bytes(std::array::from_fn(|index| tag[index]));
        let holder = format!("{holder:032x}").parse::<Holder>();
        Ok(holder.ok().map(Owner::from_id))
    }
}

/// Without the secret.
impl std::fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Idempotency(..)")
    }
}
