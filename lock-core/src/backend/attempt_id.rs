use std::{fmt, str::FromStr};

use crate::Runtime;

/// A random number that distinguishes the attempts of one acquisition.
///
/// It is written, and read back, as 16 lower-case hex digits.
///
/// # Examples
/// ```
/// use lock_core::{Holder, ResourceName, backend::{AttemptRef, AttemptId, TokioRuntime}};
///
/// let account = ResourceName::new("account:42")?;
/// let attempt = AttemptRef::new(&TokioRuntime, account, Holder::random());
/// let read: AttemptId = attempt.id.to_string().parse()?;
/// assert_eq!(read, attempt.id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(u64);

/// A text that is not an [`AttemptId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an attempt's id is 16 lower-case hex digits")]
pub struct InvalidAttemptId {
    _private: (),
}

impl AttemptId {
    pub(crate) fn draw(runtime: &dyn Runtime) -> Self {
        Self((runtime.random() >> 64) as u64)
    }

    /// Spreads pauses.
    pub(crate) const fn spread(self) -> u64 {
        self.0
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Accepts what `Display` writes, and nothing else.
impl FromStr for AttemptId {
    type Err = InvalidAttemptId;

    fn from_str(text: &str) -> Result<Self, InvalidAttemptId> {
        let invalid = InvalidAttemptId { _private: () };
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 16 || !text.bytes().all(is_digit) {
            return Err(invalid);
        }
        let number = u64::from_str_radix(text, 16).ok();
        number.map(Self).ok_or(invalid)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {

        /// Catches: two texts that are one id, so that a cancel with one text would not find an
        /// attempt that began with the other.
        #[test]
        fn only_its_own_text_is_an_attempts_id(text in "[+0-9a-fA-Fxg ]{14,17}|.{0,18}") {
            if let Ok(id) = text.parse::<AttemptId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
