mod malformed;
mod parse;
mod signature;
#[cfg(test)]
mod tests;
mod words;
mod write;

use http::HeaderName;
use lock_core::{FencingToken, Holder, InvalidName, Issuer, ResourceName, Sequencer};

use self::signature::Bytes;
#[cfg(feature = "signed")]
pub(crate) use self::signature::{Bytes as SignatureBytes, is_key_id};
pub use self::{malformed::Malformed, signature::Signature};

/// The request header that carries a [`Sequencer`], see [`FencingHeader`].
pub static FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");

/// The response header of a write that passed the fence: the token with which the write was
/// accepted.
///
/// Only a receipt of the store sets it.
///
/// A server that does not know [`FENCING_TOKEN`] ignores it. So a client must treat a 2xx without
/// this header as a write that was *not* fenced.
pub static FENCING_ACCEPTED: HeaderName = HeaderName::from_static("fencing-accepted");

/// The response header of a refusal as stale: the greatest token that the store has accepted.
///
/// It helps people who look for a fault. The mark is no secret: a greater token is not accepted
/// unless it was claimed, and if tokens are signed, only the lock service or its gateway can have
/// granted such a token.
pub static FENCING_HIGH_WATER: HeaderName = HeaderName::from_static("fencing-high-water");

/// The value of a `Fencing-Token` header.
///
/// An item of RFC 9651: the token as an integer, everything else as parameters in any order.
/// ```text
/// Fencing-Token: 34;res="account:42";iss="redis";hld="9b6c5f0e2d4a4c1f8e7d6c5b4a392817"
/// Fencing-Token: 34;res="account:42";iss="redis";hld="9b6c5f0e2d4a4c1f8e7d6c5b4a392817";\
///                exp=1900000000;kid=k2;sig=:pE7gSIulWhwYF8j8gLP8PA==:
/// ```
/// | part  | type                                | meaning                                        |
/// |-------|-------------------------------------|------------------------------------------------|
/// |       | integer, 1 to 999 999 999 999 999   | the fencing token                              |
/// | `res` | string, 1 to 256 bytes              | the [`ResourceName`] it was issued for         |
/// | `iss` | string, 1 to 64 bytes               | the [`Issuer`]                                 |
/// | `hld` | string, 32 lower-case hex digits    | the [`Holder`], a secret                       |
/// | `exp` | integer, optional                   | the end of the lease in unix seconds; advisory |
/// | `kid` | token, 1 to 32 bytes, with `sig`    | the key that signed                            |
/// | `sig` | 16 or 64 bytes in base64, with `kid`| the signature: HMAC-SHA256/128 or Ed25519      |
///
/// The parser is stricter than RFC 9651, so that two readers cannot understand one value in two
/// ways: it accepts only the form that an RFC 9651 serialiser writes. A value has no spaces, signs,
/// leading zeros or escapes. It has no parameter twice, and no unknown parameter. It is not longer
/// than [`MAX_LEN`](Self::MAX_LEN).
///
/// Parsing checks the form and allocates nothing. The alphabets of the names are checked by
/// [`to_sequencer`](Self::to_sequencer), the signature by a
/// [`TokenVerifier`](crate::TokenVerifier). Until these checks a parsed header is not known to be
/// true.
///
/// As an argument of `http::request::Builder::header` it becomes a value that is marked sensitive,
/// because anyone who knows the holder can pose as the holder:
/// ```
/// # use fenced_http::{FENCING_TOKEN, FencingHeader};
/// # use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (issuer, resource) = (Issuer::new("redis")?, ResourceName::new("account:42")?);
/// # let sequencer = Sequencer::new(issuer, resource, FencingToken::new(34)?, Holder::random());
/// let request = http::Request::put("/accounts/42")
///     .header(&FENCING_TOKEN, FencingHeader::new(&sequencer))
///     .body("{}")?;
/// let value = &request.headers()[&FENCING_TOKEN];
/// assert!(value.is_sensitive());
/// assert_eq!(FencingHeader::parse(value.as_bytes())?.to_sequencer()?, sequencer);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencingHeader<'a> {
    token: FencingToken,
    resource: &'a str,
    issuer: &'a str,
    holder: Holder,
    expires_at: Option<u64>,
    signature: Option<Signature<'a>>,
}

impl<'a> FencingHeader<'a> {
    /// The longest value that is read, in bytes: 512, and 576 if it has an Ed25519 signature, whose
    /// text is 64 bytes longer than the text of a MAC.
    ///
    /// The longest legal values have 476 and 540 bytes, with names and numbers of full length. So
    /// every legal value is read. Servers commonly allow 8 KiB for all headers together.
    pub const MAX_LEN: usize = USUAL_MAX_LEN + Bytes::ED25519_TEXT_LEN - Bytes::MAC_TEXT_LEN;

    /// A header without the optional parts.
    #[must_use]
    pub fn new(sequencer: &'a Sequencer) -> Self {
        Self {
            token: sequencer.token(),
            resource: sequencer.resource().as_str(),
            issuer: sequencer.issuer().as_str(),
            holder: sequencer.holder(),
            expires_at: None,
            signature: None,
        }
    }

    /// Reads the value of a header.
    ///
    /// # Errors
    /// [`Malformed`] if it is not exactly of the form above.
    pub fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        parse::header(value)
    }

    /// Adds the end of the lease, in unix seconds.
    ///
    /// # Errors
    /// [`Malformed::Number`] if it is 0 or has more than 15 digits.
    pub fn expires_at(mut self, unix_seconds: u64) -> Result<Self, Malformed> {
        self.expires_at = Some(parse::in_range("exp", unix_seconds)?);
        Ok(self)
    }

    /// Adds a signature. The receiver checks it.
    #[must_use]
    pub const fn signed(mut self, signature: Signature<'a>) -> Self {
        self.signature = Some(signature);
        self
    }

    /// The parts that the store compares.
    ///
    /// # Errors
    /// [`InvalidName`] if the resource or the issuer is not a legal name.
    pub fn to_sequencer(&self) -> Result<Sequencer, InvalidName> {
        let issuer = Issuer::new(self.issuer)?;
        let resource = ResourceName::new(self.resource)?;
        Ok(Sequencer::new(issuer, resource, self.token, self.holder))
    }

    /// The fencing token.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The resource, as the header has it.
    #[must_use]
    pub const fn resource(&self) -> &'a str {
        self.resource
    }

    /// The issuer, as the header has it.
    #[must_use]
    pub const fn issuer(&self) -> &'a str {
        self.issuer
    }

    /// The holder, a secret.
    #[must_use]
    pub const fn holder(&self) -> Holder {
        self.holder
    }

    /// The end of the lease in unix seconds, if the header has it. It is advisory, because clocks
    /// differ.
    #[must_use]
    pub const fn expiry(&self) -> Option<u64> {
        self.expires_at
    }

    /// The signature, if there is one.
    #[must_use]
    pub const fn signature(&self) -> Option<&Signature<'a>> {
        self.signature.as_ref()
    }
}

/// The longest value without an Ed25519 signature, in bytes.
const USUAL_MAX_LEN: usize = 512;
