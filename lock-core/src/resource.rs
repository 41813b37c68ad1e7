use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

/// The name of a resource. Each resource has one lock and, in the store, one high-water mark.
///
/// 1 to 256 bytes of visible ASCII without `"` and `\`, because a name travels in an HTTP header
/// as an unescaped quoted string. Names are compared byte by byte. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceName(Arc<str>);

impl ResourceName {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 256;

    /// Makes a name.
    ///
    /// # Errors
    /// [`InvalidName`] if `name` is empty, longer than 256 bytes or has a byte that is not allowed.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidName> {
        let name = name.into();
        let alphabet = "use visible ASCII without \" and \\";
        check(&name, "resource name", Self::MAX_LEN, alphabet, |byte| {
            byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'
        })?;
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceName({:?})", self.0)
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for ResourceName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for ResourceName {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl TryFrom<&str> for ResourceName {
    type Error = InvalidName;

    fn try_from(name: &str) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl TryFrom<String> for ResourceName {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl TryFrom<&String> for ResourceName {
    type Error = InvalidName;

    fn try_from(name: &String) -> Result<Self, InvalidName> {
        Self::new(name.as_str())
    }
}

/// Lets functions that take a name also take one that is already checked.
impl TryFrom<&Self> for ResourceName {
    type Error = InvalidName;

    fn try_from(name: &Self) -> Result<Self, InvalidName> {
        Ok(name.clone())
    }
}

impl From<ResourceName> for String {
    fn from(name: ResourceName) -> Self {
        name.as_str().to_owned()
    }
}

/// A text that is not a valid name. The error says which kind of name was meant, how the text
/// begins, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} {beginning:?}: {why}")]
pub struct InvalidName {
    what: &'static str,
    beginning: String,
    why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Why {
    #[error("it is empty")]
    Empty,
    #[error("{len} bytes is too long, at most {max} are allowed")]
    TooLong { len: usize, max: usize },
    #[error("byte 0x{byte:02x} after {at} others is not allowed: {alphabet}")]
    Byte {
        at: usize,
        byte: u8,
        alphabet: &'static str,
    },
}

impl From<std::convert::Infallible> for InvalidName {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// Checks a name against its length and alphabet; shared by all names of the vocabulary.
pub(crate) fn check(
    name: &str,
    what: &'static str,
    max: usize,
    alphabet: &'static str,
    allowed: impl Fn(u8) -> bool,
) -> Result<(), InvalidName> {
    let why = if name.is_empty() {
        Why::Empty
    } else if name.len() > max {
        Why::TooLong {
            len: name.len(),
            max,
        }
    } else if let Some((at, byte)) = name.bytes().enumerate().find(|(_, byte)| !allowed(*byte)) {
        Why::Byte { at, byte, alphabet }
    } else {
        return Ok(());
    };
    let beginning = name.chars().take(32).collect();
    Err(InvalidName {
        what,
        beginning,
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a name that ends a quoted string of a header, a key or a log line.
    #[test]
    fn visible_ascii_without_quote_and_backslash() {
        for good in [
            "a",
            "account:42",
            "orders/42",
            "{tag}",
            "a;b=c",
            "';--",
            "..",
            &"x".repeat(256),
        ] {
            assert!(ResourceName::new(good).is_ok(), "{good:?}");
        }
        for bad in [
            "",
            "a b",
            "a\n",
            "a\0",
            "a\"b",
            "a\\b",
            "ä",
            "🦀",
            "\x7f",
            &"x".repeat(257),
        ] {
            assert!(ResourceName::new(bad).is_err(), "{bad:?}");
        }
    }
}
