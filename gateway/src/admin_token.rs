use std::{collections::BTreeSet, convert::Infallible, fmt, str::FromStr, sync::Arc};

/// The token of an operator. It is a secret: `Debug` hides it, and nothing else prints it.
#[derive(Clone)]
pub struct AdminToken(Arc<str>);

impl AdminToken {
    /// The secret, for a comparison.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Refuses a token that is too easy to guess or cannot be sent in a header.
    ///
    /// # Errors
    /// [`WeakToken`], which does not repeat the token.
    pub fn check(&self) -> Result<(), WeakToken> {
        let different = self.0.bytes().collect::<BTreeSet<_>>().len();
        let is_visible = self.0.bytes().all(|byte| byte.is_ascii_graphic());
        if self.0.len() >= LEN_MIN && different >= DIFFERENT_MIN && is_visible {
            return Ok(());
        }
        Err(WeakToken(()))
    }
}

/// The token of an operator is too easy to guess, or cannot be sent in a header.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "use {LEN_MIN} or more visible ASCII characters, {DIFFERENT_MIN} of them different, such as \
     those that `openssl rand -hex 16` prints"
)]
pub struct WeakToken(());

/// Fewer than eight of 32 random hexadecimal digits are different about once in 28 million times.
const LEN_MIN: usize = 16;
const DIFFERENT_MIN: usize = 8;

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(..)")
    }
}

/// Accepts any text, so that no message of the argument parser can quote it.
impl FromStr for AdminToken {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.into()))
    }
}
