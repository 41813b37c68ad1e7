//! Signed tokens: a client can neither invent one nor use one for another resource or service.
//!
//! They are useful if the signer is not the client: a lock gateway signs what it grants, and the
//! services check it. A client that talks to the lock service or the database itself needs no token
//! of the gateway, and can do without signatures.
//!
//! ```
//! use fenced_http::{
//!     FencingHeader, TokenVerifier,
//!     signed::{Audience, KeyRing, Secret, SigningKey},
//! };
//! # use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (issuer, resource) = (Issuer::new("redis")?, ResourceName::new("account:42")?);
//! # let sequencer = Sequencer::new(issuer, resource, FencingToken::new(34)?, Holder::random());
//! let (secret, audience) = (Secret::random(), Audience::new("accounts")?);
//!
//! // The gateway has the secret of all services. It signs for one of them.
//! let gateway = KeyRing::new([SigningKey::derived("k2", &secret, audience.clone())?])?;
//! let key = gateway.signing_key();
//! let header = key.sign(FencingHeader::new(&sequencer));
//!
//! // That service has the secret that is derived for it.
//! let its_own = secret.derive(&audience);
//! let service = KeyRing::new([SigningKey::new("k2", &its_own, audience)?])?;
//! assert!(service.verify(&header).is_ok());
//!
//! // Any other service takes it for a forgery.
//! let other = Audience::new("orders")?;
//! let other = KeyRing::new([SigningKey::derived("k2", &secret, other)?])?;
//! assert!(other.verify(&header).is_err());
//! # Ok(())
//! # }
//! ```
//!
//! # Services that check and cannot sign
//! A service with the secret of its audience can forge tokens for itself. A service that must not
//! be able to do so gets a public key instead, with the feature `ed25519`; checking then takes
//! longer.
//!
#![cfg_attr(feature = "ed25519", doc = "```")]
#![cfg_attr(not(feature = "ed25519"), doc = "```ignore")]
//! use fenced_http::{
//!     FencingHeader, TokenVerifier,
//!     signed::{Audience, KeyRing, PublicKey, Secret, SigningKey, VerifyingKey},
//! };
//! # use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (issuer, resource) = (Issuer::new("redis")?, ResourceName::new("account:42")?);
//! # let sequencer = Sequencer::new(issuer, resource, FencingToken::new(34)?, Holder::random());
//! let audience = Audience::new("accounts")?;
//! let pair = SigningKey::ed25519("e1", &Secret::random(), audience.clone())?;
//! let told = pair.public_key().map(|key| key.to_string()); // no secret
//! let gateway = KeyRing::new([pair])?;
//!
//! let public: PublicKey = told.unwrap_or_default().parse()?;
//! let service = KeyRing::new([VerifyingKey::new("e1", public, audience)?])?; // cannot sign
//! let key = gateway.signing_key();
//! assert!(service.verify(&key.sign(FencingHeader::new(&sequencer))).is_ok());
//! # Ok(())
//! # }
//! ```
//! The `kid` of a token selects a key, and the key determines the algorithm. The token cannot
//! choose it.
//!
//! # The signed bytes
//! These bytes, in this order: `fencing-token 1` and a zero byte; audience and key id; zeros up to
//! a multiple of 64, so that the part that all tokens of a key share is hashed once; issuer and
//! resource; the token in eight bytes; the holder in sixteen; `exp` in eight, 0 if there is none.
//! Each text comes after its length in two bytes. Numbers are big-endian. The text of the header is
//! not signed, so the order of its parameters does not matter.
//!
//! # Limits of a signature
//! A signature does not prevent replay: anyone who reads a header can send it again, as long as its
//! token is the newest. Use TLS, so that others cannot read the header.

mod audience;
mod error;
mod key;
mod mac;
mod message;
#[cfg(feature = "ed25519")]
mod public;
mod ring;
mod secret;
#[cfg(test)]
mod tests;
mod verifying;

#[cfg(feature = "ed25519")]
pub use self::public::PublicKey;
pub use self::{
    audience::Audience, error::InvalidKey, key::SigningKey, ring::KeyRing, secret::Secret,
    verifying::VerifyingKey,
};
