use std::fmt;

/// The reason of an administrator's action, for the log: 1 to 500 characters, and not all blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(String);

/// A reason that is blank, or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a reason has 1 to 500 characters: write why, for the readers of the log")]
#[non_exhaustive]
pub struct InvalidReason;

impl Reason {
    const MAX_LEN: usize = 500;

    /// Checks a text.
    ///
    /// # Errors
    /// [`InvalidReason`] if it is blank, or longer than 500 characters.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidReason> {
        let text = text.into();
        if text.trim().is_empty() || text.chars().count() > Self::MAX_LEN || text.contains('\0') {
            return Err(InvalidReason);
        }
        Ok(Self(text))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Reason {
    type Err = InvalidReason;

    fn from_str(text: &str) -> Result<Self, InvalidReason> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: an order without a reason in the log.
    #[test]
    fn a_reason_says_something() {
        assert_eq!(Reason::new(" \n"), Err(InvalidReason));
        assert_eq!(Reason::new("x".repeat(501)), Err(InvalidReason));
        assert_eq!(Reason::new("a\0"), Err(InvalidReason));
        assert!(Reason::new("ö".repeat(500)).is_ok());
    }
}
