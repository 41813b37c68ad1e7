use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::resource::{InvalidName, check};

/// The configured name of the lock service that issues tokens; the store remembers it.
///
/// Tokens of two services cannot be compared, so a claim by another issuer is refused. 1 to 64
/// bytes of ASCII letters, digits and `-._:`. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Issuer(Arc<str>);

impl Issuer {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 64;

    /// Makes an issuer name.
    ///
    /// # Errors
    /// [`InvalidName`] if `name` is empty, longer than 64 bytes or has a byte that is not allowed.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidName> {
        let name = name.into();
        let alphabet = "use ASCII letters, digits and -._:";
        check(&name, "issuer name", Self::MAX_LEN, alphabet, |byte| {
            byte.is_ascii_alphanumeric() || b"-._:".contains(&byte)
        })?;
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issuer({:?})", self.0)
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Issuer {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl TryFrom<&str> for Issuer {
    type Error = InvalidName;

    fn try_from(name: &str) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl TryFrom<String> for Issuer {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl From<Issuer> for String {
    fn from(name: Issuer) -> Self {
        name.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a name with a character that ends its field in the header of a fencing token.
    #[test]
    fn letters_digits_and_four_marks() {
        for good in ["redis", "memory", "redis-eu.1:prod_x", &"x".repeat(64)] {
            assert!(Issuer::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(Issuer::new(bad).is_err(), "{bad:?}");
        }
    }
}
