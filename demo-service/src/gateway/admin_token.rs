use std::{convert::Infallible, fmt, str::FromStr, sync::Arc};

use crate::failure::Failure;

/// The token of an operator. A secret: `Debug` hides it and nothing else prints it.
#[derive(Clone)]
pub(crate) struct AdminToken(Arc<str>);

impl AdminToken {
    /// The secret, to compare it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Refuses a token that is too easy to guess or cannot be sent in a header.
    ///
    /// # Errors
    /// [`Failure::Usage`], which does not repeat the token.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.0.len() >= 16 && self.0.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(());
        }
        Err(Failure::Usage(
            "--admin-token: use 16 or more visible ASCII characters, such as those that \
             `openssl rand -hex 16` prints"
                .into(),
        ))
    }
}

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
