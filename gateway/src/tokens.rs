use axum::http::{HeaderValue, header::InvalidHeaderValue};
use fenced_http::{FencingHeader, Rejection, TokenVerifier, Unsigned, signed::KeyRing};
use lock_core::{Issuer, Sequencer};

/// Writes the tokens of a gateway, and checks the tokens that the gateway gets.
#[derive(Clone, Debug)]
pub struct Tokens(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// A client can use the tokens that it got, and cannot invent tokens.
    Signed(KeyRing),
    /// Clients are trusted. Only the issuer and the size of a token are checked.
    Unsigned(Unsigned),
}

impl Tokens {
    /// Tokens that this ring signs, or unsigned tokens if there is no ring.
    pub(crate) fn new(ring: Option<KeyRing>, issuer: &Issuer) -> Self {
        Self(match ring {
            Some(ring) => Kind::Signed(ring),
            None => Kind::Unsigned(Unsigned::new(issuer.clone())),
        })
    }

    /// The `Fencing-Token` header of a grant.
    ///
    /// # Errors
    /// For a byte that no header may have. A sequencer has no such byte.
    pub(crate) fn header(&self, sequencer: &Sequencer) -> Result<HeaderValue, InvalidHeaderValue> {
        let header = FencingHeader::new(sequencer);
        match &self.0 {
            Kind::Signed(ring) => ring.signing_key().sign(header).try_into(),
            Kind::Unsigned(_) => header.try_into(),
        }
    }
}

impl TokenVerifier for Tokens {
    fn verify(&self, header: &FencingHeader<'_>) -> Result<(), Rejection> {
        match &self.0 {
            Kind::Signed(ring) => ring.verify(header),
            Kind::Unsigned(unsigned) => unsigned.verify(header),
        }
    }
}
