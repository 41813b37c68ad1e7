//! A single token, without any HTTP around it.

use std::hint::black_box;

use fenced_http::{
    FencingHeader, TokenVerifier,
    signed::{Audience, KeyRing, Secret, SigningKey},
};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderValue;
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use sha2::Sha256;

use super::peer::{AUDIENCE, EXPIRY, Jwt};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Samples, take_turns},
};

/// The resource that the tokens are for.
pub(super) const RESOURCE: &str = "account:42";

/// How many tokens are checked in one sample.
const BATCH: usize = 512;

/// How many samples make up a turn.
const SAMPLES_PER_TURN: usize = 20;

/// A grant like those of a lock service whose counters start at the clock.
pub(super) fn sequencer() -> Result<Sequencer, BoxError> {
    let (issuer, resource) = (Issuer::new("redis")?, ResourceName::new(RESOURCE)?);
    let token = FencingToken::new(179_000_000_000_034)?;
    Ok(Sequencer::new(issuer, resource, token, Holder::random()))
}

/// A key ring with one key.
pub(super) fn ring() -> Result<KeyRing, BoxError> {
    let audience = Audience::new(AUDIENCE)?;
    Ok(KeyRing::new([SigningKey::new(
        "k2",
        &Secret::random(),
        audience,
    )?])?)
}

/// A header value that the ring has signed.
pub(super) fn signed(ring: &KeyRing) -> Result<HeaderValue, BoxError> {
    let sequencer = sequencer()?;
    let header = FencingHeader::new(&sequencer).expires_at(EXPIRY)?;
    Ok(HeaderValue::try_from(ring.signing_key().sign(header))?)
}

pub(super) async fn verify_vs_mac(setting: Setting) -> Result<Measured, BoxError> {
    let ring = ring()?;
    let value = signed(&ring)?;
    let bare = BareMac::new();
    let medians = take_turns(
        setting.rounds,
        async |ours| {
            sample(ours, || is_accepted(&ring, black_box(&value)));
            Ok(())
        },
        async |other| {
            sample(other, || bare.is_right(black_box(&bare.message)));
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Nanos))
}

pub(super) async fn jwt_vs_ours(setting: Setting) -> Result<Measured, BoxError> {
    let ring = ring()?;
    let value = signed(&ring)?;
    let jwt = Jwt::new(&sequencer()?)?;
    let medians = take_turns(
        setting.rounds,
        async |ours| {
            sample(ours, || is_accepted(&ring, black_box(&value)));
            Ok(())
        },
        async |other| {
            sample(other, || jwt.is_accepted());
            Ok(())
        },
    )
    .await?;
    Ok(medians.other_by_ours(Unit::Nanos))
}

/// Repeats the same check. A failing check would be quicker, so it must not fail.
fn sample(samples: &mut Samples, is_right: impl Fn() -> bool) {
    for _ in 0..SAMPLES_PER_TURN {
        samples.time_each(vec![(); BATCH], |()| {
            assert!(black_box(is_right()), "what was signed is not accepted");
        });
    }
}

/// The check that a service applies to a header value.
fn is_accepted(ring: &KeyRing, value: &HeaderValue) -> bool {
    FencingHeader::parse(value.as_bytes()).is_ok_and(|header| ring.verify(&header).is_ok())
}

/// Only the MAC that our verifier computes.
struct BareMac {
    keyed: Hmac<Sha256>,
    message: Vec<u8>,
    tag: [u8; 16],
}

impl BareMac {
    /// Over as many bytes as are signed for a token, in one piece and without the padding zeros.
    fn new() -> Self {
        let texts = AUDIENCE.len() + "k2".len() + "redis".len() + RESOURCE.len();
        let signed = "fencing-token 1\0".len() + 4 * 2 + texts + 8 + 16 + 8;
        let keyed = Hmac::new(&[7; 64].into());
        let message = vec![b'm'; signed];
        let tag = keyed.clone().chain_update(&message).finalize();
        let tag = tag.into_bytes();
        let tag = std::array::from_fn(|index| tag[index]);
        Self {
            keyed,
            message,
            tag,
        }
    }

    fn is_right(&self, message: &[u8]) -> bool {
        let mac = self.keyed.clone().chain_update(message);
        mac.verify_truncated_left(&self.tag).is_ok()
    }
}
