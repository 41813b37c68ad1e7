use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::{Audience, InvalidKey, Secret};
use crate::http::{FencingHeader, Signature, header::is_key_id};

/// Signs tokens of one audience, and checks them.
///
/// The signature is the first half of the HMAC-SHA256 over [what is signed](super#what-is-signed):
/// 128 bits, of which a forger has to guess all at once.
#[derive(Clone)]
pub struct SigningKey {
    id: Box<str>,
    audience: Audience,
    mac: Hmac<Sha256>,
}

impl SigningKey {
    /// A key of a secret that is this audience's own.
    ///
    /// # Errors
    /// [`InvalidKey::Id`] if `id` is not a letter and up to 31 letters, digits, `-`, `_` or `.`.
    pub fn new(
        id: impl Into<Box<str>>,
        secret: &Secret,
        audience: Audience,
    ) -> Result<Self, InvalidKey> {
        let id = id.into();
        if !is_key_id(&id) {
            return Err(InvalidKey::Id);
        }
        let mac = secret.mac();
        Ok(Self { id, audience, mac })
    }

    /// A key of the secret that is derived for this audience from one that all audiences share.
    ///
    /// For whoever signs. Whoever only checks gets `secret.derive(&audience)` and
    /// [`new`](Self::new).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn derived(
        id: impl Into<Box<str>>,
        secret: &Secret,
        audience: Audience,
    ) -> Result<Self, InvalidKey> {
        Self::new(id, &secret.derive(&audience), audience)
    }

    /// Its id, which is sent along.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The service that its tokens are meant for.
    #[must_use]
    pub const fn audience(&self) -> &Audience {
        &self.audience
    }

    /// Signs a token. `seq` is not part of it: that is for the client to set, write by write.
    #[must_use]
    pub fn sign<'a>(&'a self, header: FencingHeader<'a>) -> FencingHeader<'a> {
        let tag = self.tag(&header).finalize().into_bytes();
        let half = std::array::from_fn(|index| tag[index]);
        header.signed(Signature::of_key(&self.id, half))
    }

    /// Whether this key has made the signature. It takes as long for a wrong one as for the right
    /// one.
    pub(super) fn has_signed(&self, header: &FencingHeader<'_>, signature: &Signature<'_>) -> bool {
        let tag = self.tag(header);
        tag.verify_truncated_left(signature.as_bytes()).is_ok()
    }

    fn tag(&self, header: &FencingHeader<'_>) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(b"fencing-token 1\0");
        for text in [
            self.audience.as_str(),
            &self.id,
            header.issuer(),
            header.resource(),
        ] {
            // None is longer than 256 bytes.
            let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
            mac.update(&length.to_be_bytes());
            mac.update(text.as_bytes());
        }
        mac.update(&header.token().get().to_be_bytes());
        mac.update(&header.holder().expose_bytes());
        // No lease ends at 0, so that means "not said".
        mac.update(&header.expiry().unwrap_or(0).to_be_bytes());
        mac
    }
}

/// Without the secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}
