//! The same claims as a JSON Web Token, also signed by HMAC-SHA256.

use std::hint::black_box;

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    decode, encode,
    errors::ErrorKind,
    signature::{Error, Signer, Verifier},
};
use lock_core::Sequencer;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The service that the tokens are for.
pub(super) const AUDIENCE: &str = "accounts";

/// When their leases end, in unix seconds: in the year 2100.
pub(super) const EXPIRY: u64 = 4_102_444_800;
use crate::figure::BoxError;

/// A token of jsonwebtoken, and everything needed to check it.
pub(super) struct Jwt {
    text: String,
    key: DecodingKey,
    validation: Validation,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: String,
    exp: u64,
    tok: u64,
    hld: String,
}

impl Jwt {
    pub(super) fn new(sequencer: &Sequencer) -> Result<Self, BoxError> {
        // It fails the second time, because the provider is already there.
        let _same = PROVIDER.install_default();
        let claims = Claims {
            iss: sequencer.issuer().to_string(),
            aud: AUDIENCE.to_owned(),
            sub: sequencer.resource().to_string(),
            exp: EXPIRY,
            tok: sequencer.token().get(),
            hld: sequencer.holder().expose().to_string(),
        };
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("k2".to_owned());
        let secret = [7; 32];
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[AUDIENCE]);
        Ok(Self {
            text: encode(&header, &claims, &EncodingKey::from_secret(&secret))?,
            key: DecodingKey::from_secret(&secret),
            validation,
        })
    }

    pub(super) fn is_accepted(&self) -> bool {
        let text = black_box(self.text.as_str());
        decode::<Claims>(text, &self.key, &self.validation).is_ok()
    }
}

/// The MAC is the one that we use ourselves, so that the formats are compared and not the MACs, and
/// so that no C library has to be built. It is keyed anew for every token, as in the two
/// implementations that come with jsonwebtoken.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, key| Ok(Box::new(Hs256::new(key.as_bytes())?)),
    verifier_factory: |_, key| Ok(Box::new(Hs256::new(key.try_get_as_bytes()?)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(secret: &[u8]) -> Result<Self, jsonwebtoken::errors::Error> {
        let keyed = Hmac::new_from_slice(secret);
        Ok(Self(keyed.map_err(|_| ErrorKind::InvalidKeyFormat)?))
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mac = self.0.clone().chain_update(message);
        Ok(mac.finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let mac = self.0.clone().chain_update(message);
        mac.verify_slice(signature).map_err(Error::from_source)
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
