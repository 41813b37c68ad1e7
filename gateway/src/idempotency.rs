use std::{
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use axum::http::{HeaderMap, HeaderName, header};
use fenced_http::{Problem, ProblemType, signed::Secret};
use fenced_store::FencedLocks;
use hmac::{Hmac, KeyInit, Mac};
use lock_core::{Holder, ResourceName};
use serde::Serialize;
use sha2::Sha256;
use tokio::sync::watch;

use crate::keys::KeyTable;
use crate::{error::ApiError, problems};

/// The request header that makes a repeated acquire find its lease again.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The length of a key in bytes, which is enough for a unique key.
pub(crate) const KEY_LEN: RangeInclusive<usize> = 16..=255;

/// How long the request of a key is remembered after its last use. A client has to repeat a request
/// within this time.
const KNOWN_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// How often a gateway deletes older keys.
const FORGETS_EVERY: Duration = Duration::from_secs(60 * 60);

/// Gives a repeated request the holder of the first one, at whichever gateway it arrives.
///
/// The holder is computed from the key, the caller's `Authorization`, the whole request, and a
/// secret. So the holder is the same at every gateway, and a client that guesses a key cannot
/// compute the holder. A different request never finds the lease. The database, which all gateways
/// share, says whether the key was used for another request.
///
/// The computation uses the present secret: after a change of keys, a repeated request has another
/// holder.
#[derive(Clone)]
pub(crate) struct Idempotency {
    secret: watch::Receiver<Secret>,
    /// The time at which this gateway last deleted old keys, in seconds since 1970.
    forgot_at: Arc<AtomicI64>,
}

/// A request that has a key.
pub(crate) struct Keyed {
    mac: Hmac<Sha256>,
    /// A digest of the key, the endpoint and the caller.
    id: String,
    /// A digest of the request.
    request: String,
}

impl Idempotency {
    /// Gateways with the same secret know each other's keys. Without a secret, this gateway knows
    /// only its own keys.
    pub(crate) fn new(secret: Option<watch::Receiver<Secret>>) -> Self {
        Self {
            // If the sender is gone, the last secret stays.
            secret: secret.unwrap_or_else(|| watch::Sender::new(Secret::random()).subscribe()),
            forgot_at: Arc::default(),
        }
    }

    /// The secret signs tokens, or is the seed of a key pair. Clients know the values that are
    /// computed here. So these values have a key of their own, from which the secret cannot be
    /// computed.
    fn mac(&self) -> Hmac<Sha256> {
        let mut derived = hmac(self.secret.borrow().expose().as_bytes());
        derived.update(b"idempotency key 1");
        hmac(&derived.finalize().into_bytes())
    }

    /// The request at this path, with its key; `None` if it has no key.
    ///
    /// # Errors
    /// 400 if there are several keys, or if the key is too short to be unique.
    pub(crate) fn keyed(
        &self,
        headers: &HeaderMap,
        path: &str,
        asked: &impl Serialize,
    ) -> Result<Option<Keyed>, Problem> {
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
        // The digest is that of the parsed request, so another order or other white space does not
        // matter.
        let asked =
            serde_json::to_vec(asked).map_err(|_| Problem::new(ProblemType::SERVICE_FAULT))?;
        let mac = self.mac();
        let id = digest(&mac, &[b"key", key.as_bytes(), caller, path.as_bytes()]);
        let request = digest(&mac, &[b"request", id.as_bytes(), &asked]);
        Ok(Some(Keyed { mac, id, request }))
    }

    /// Whether it is time to delete old keys.
    fn forgets(&self, now: i64) -> bool {
        let last = self.forgot_at.load(Ordering::Relaxed);
        let is_due = now.saturating_sub(last) >= seconds(FORGETS_EVERY);
        let claim = || {
            let order = Ordering::Relaxed;
            self.forgot_at.compare_exchange(last, now, order, order)
        };
        is_due && claim().is_ok()
    }
}

impl Keyed {
    /// Remembers the request of the key, if the key is used for the first time.
    ///
    /// # Errors
    /// 422 if the key was used for another request before.
    pub(crate) async fn check<DB: KeyTable>(
        &self,
        idempotency: &Idempotency,
        protected: &FencedLocks<DB>,
    ) -> Result<(), ApiError> {
        let now = seconds(protected.locks().runtime().unix_time());
        let mut connection = protected.store().pool().acquire().await?;
        if idempotency.forgets(now) {
            DB::forget_requests(&mut connection, now - seconds(KNOWN_FOR)).await?;
        }
        let first = DB::first_request(&mut connection, &self.id, &self.request, now).await?;
        if first == self.request {
            return Ok(());
        }
        Err(Problem::new(problems::KEY_REUSED)
            .detail(
                "this Idempotency-Key was sent with another body before: repeat that body, or send \
                 this one with a new key",
            )
            .into())
    }

    /// The holder that acquires this resource. It is the same whenever, and at whichever gateway,
    /// the request arrives.
    pub(crate) fn holder(&self, resource: &ResourceName) -> Option<Holder> {
        let parts: [&[u8]; 4] = [
            b"owner",
            self.id.as_bytes(),
            self.request.as_bytes(),
            resource.as_str().as_bytes(),
        ];
        digest(&self.mac, &parts).parse().ok()
    }
}

/// The HMAC of a key that is shorter than a block. By RFC 2104 the key is filled up with zeros.
fn hmac(key: &[u8]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    let length = std::cmp::min(key.len(), block.len());
    block[..length].copy_from_slice(&key[..length]);
    Hmac::new(&block.into())
}

/// The first 16 bytes of the MAC, in hex.
fn digest(mac: &Hmac<Sha256>, parts: &[&[u8]]) -> String {
    let mut mac = mac.clone();
    for part in parts {
        mac.update(&part.len().to_be_bytes());
        mac.update(part);
    }
    let tag = mac.finalize().into_bytes();
    let first = u128::from_be_bytes(std::array::from_fn(|index| tag[index]));
    format!("{first:032x}")
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// Does not show the secret.
impl std::fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Idempotency(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret may be the seed of a key pair, and such a seed must not be used for anything
    /// else.
    /// Catches: the secret of a signing key that is used as it is.
    #[test]
    fn the_values_that_clients_see_have_a_key_of_their_own() {
        let secret = Secret::random();
        let ours = Idempotency::new(Some(watch::Sender::new(secret.clone()).subscribe()));
        let same = Idempotency::new(Some(watch::Sender::new(secret.clone()).subscribe()));
        let of = |mac: &Hmac<Sha256>| digest(mac, &[b"owner"]);
        assert_eq!(of(&ours.mac()), of(&same.mac()));
        assert_ne!(of(&ours.mac()), of(&hmac(secret.expose().as_bytes())));
    }
}
