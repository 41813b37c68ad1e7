use std::{fmt, str::FromStr};

use http::{HeaderMap, HeaderValue, StatusCode, header::InvalidHeaderValue};
use lock_core::{FencingToken, Sequencer};

use super::NotFenced;
use crate::{FENCING_ACCEPTED, FENCING_TOKEN, FencingHeader, Malformed};

/// The proof that a client sends: the value of a `Fencing-Token` header. It is checked once and can
/// be sent many times.
///
/// The value contains a secret. `Debug` does not show the secret, and the value is marked
/// sensitive.
#[derive(Clone)]
pub struct Credential {
    value: HeaderValue,
    token: FencingToken,
}

impl Credential {
    /// An unsigned credential, for a client that talks to the lock service itself.
    ///
    /// # Errors
    /// [`InvalidHeaderValue`] for a byte that no header may have. A sequencer has no such byte.
    pub fn new(sequencer: &Sequencer) -> Result<Self, InvalidHeaderValue> {
        Self::of(FencingHeader::new(sequencer))
    }

    /// A credential made of the parts of a header.
    ///
    /// # Errors
    /// [`InvalidHeaderValue`] for a byte that no header may have. A parsed header has no such byte.
    pub fn of(header: FencingHeader<'_>) -> Result<Self, InvalidHeaderValue> {
        let token = header.token();
        let value = header.try_into()?;
        Ok(Self { value, token })
    }

    /// Puts the value among the headers of a request, in place of any value that is there.
    pub fn put_on(&self, headers: &mut HeaderMap) {
        headers.insert(&FENCING_TOKEN, self.value.clone());
    }

    /// The value to send as [`FENCING_TOKEN`].
    #[must_use]
    pub const fn value(&self) -> &HeaderValue {
        &self.value
    }

    /// The value as text, to be sent with a message of a queue or over another transport; the
    /// receiver calls [`Fenced::from_text`](crate::Fenced::from_text). It is a **secret**: anyone
    /// who knows it can pose as the holder.
    #[must_use]
    pub fn expose(&self) -> &str {
        // The grammar has no other bytes.
        self.value.to_str().unwrap_or_default()
    }

    /// The fencing token.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// Fails for a 2xx that does not say that the store has accepted this token.
    ///
    /// Every other answer passes, because it does not say that a write was made.
    ///
    /// # Errors
    /// [`NotFenced`].
    pub fn believe(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), NotFenced> {
        if status.is_success() && !self.is_accepted(headers) {
            return Err(NotFenced { status });
        }
        Ok(())
    }

    /// Whether the headers of a response say that the store has accepted *this* token, exactly
    /// once. If not, a 2xx means a write that was **not fenced**.
    #[must_use]
    pub fn is_accepted(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(&FENCING_ACCEPTED).iter();
        let Some((value, None)) = values.next().map(|value| (value, values.next())) else {
            return false;
        };
        value
            .to_str()
            .is_ok_and(|text| text.parse() == Ok(self.token))
    }
}

/// Accepts the value of a `Fencing-Token` header, as a gateway hands it out.
impl FromStr for Credential {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::of(FencingHeader::parse(text.as_bytes())?).map_err(not_legal)
    }
}

/// Shows the token only.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// The parsed text has no control characters, so this does not happen.
fn not_legal(_: InvalidHeaderValue) -> Malformed {
    Malformed::Syntax { at: 0 }
}
