use std::{fmt, str::FromStr, sync::Arc};

use super::InvalidKey;

/// The service for which a token is meant. The audience is signed, but not sent: each service uses
/// its own name, so a token for another service is not authentic there.
///
/// It has 1 to 64 letters, digits, `-`, `_`, `.` or `:`. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Audience(Arc<str>);

impl Audience {
    /// The longest audience, in bytes.
    const MAX_LEN: usize = 64;

    /// Makes an audience.
    ///
    /// # Errors
    /// [`InvalidKey::Audience`] if it is empty, too long or has a byte that is not allowed.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidKey> {
        let name = name.into();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if (1..=Self::MAX_LEN).contains(&name.len()) && name.bytes().all(legal) {
            Ok(Self(name))
        } else {
            Err(InvalidKey::Audience)
        }
    }

    /// Its name.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Audience {
    type Err = InvalidKey;

    fn from_str(name: &str) -> Result<Self, InvalidKey> {
        Self::new(name)
    }
}
