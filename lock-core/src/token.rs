use std::{fmt, num::NonZeroU64, str::FromStr};

use serde::{Deserialize, Serialize};

/// The number of a grant: the store refuses a write that presents a lower one.
///
/// For each resource, a grant has a greater token than every grant that was returned before its
/// request began. Tokens run from 1 to [`FencingToken::MAX`], that is 999 999 999 999 999: the
/// integer limit of HTTP structured fields (RFC 9651, 3.3.1), and exact in JSON, JavaScript and
/// Lua, whose numbers are doubles. At 2^53 a scripted Redis `INCR` hands out one number twice.
///
/// # Examples
/// ```
/// use lock_core::FencingToken;
///
/// let slow = FencingToken::new(33)?;
/// let next = slow.next().expect("there are many more");
/// assert!(slow < next, "a store refuses the slow holder");
/// assert_eq!("34".parse(), Ok(next));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct FencingToken(NonZeroU64);

impl FencingToken {
    /// The smallest token, 1.
    pub const MIN: Self = Self(NonZeroU64::MIN);

    /// The greatest token, 999 999 999 999 999 (15 digits).
    pub const MAX: Self = Self(NonZeroU64::new(999_999_999_999_999).expect("not zero"));

    /// Makes a token from a number.
    ///
    /// # Errors
    /// [`InvalidToken`] if `number` is 0 or above [`FencingToken::MAX`].
    pub const fn new(number: u64) -> Result<Self, InvalidToken> {
        match NonZeroU64::new(number) {
            Some(token) if number <= Self::MAX.get() => Ok(Self(token)),
            _ => Err(InvalidToken { _private: () }),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The token that follows, or `None` after [`FencingToken::MAX`].
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match Self::new(self.get() + 1) {
            Ok(next) => Some(next),
            Err(_) => None,
        }
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({self})")
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.get()
    }
}

/// Lossless: a token has at most 15 digits.
impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        token.get().cast_signed()
    }
}

impl TryFrom<u64> for FencingToken {
    type Error = InvalidToken;

    fn try_from(number: u64) -> Result<Self, InvalidToken> {
        Self::new(number)
    }
}

impl TryFrom<i64> for FencingToken {
    type Error = InvalidToken;

    fn try_from(number: i64) -> Result<Self, InvalidToken> {
        u64::try_from(number).map_or(Err(InvalidToken { _private: () }), Self::new)
    }
}

/// Accepts exactly what [`Display`](fmt::Display) writes: no sign, space or leading zero.
impl FromStr for FencingToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let invalid = Err(InvalidToken { _private: () });
        if !(1..=15).contains(&text.len()) || text.starts_with('0') {
            return invalid;
        }
        // The text is read in one pass, because every request reads a token.
        let mut number = 0;
        for byte in text.bytes() {
            if !byte.is_ascii_digit() {
                return invalid;
            }
            number = number * 10 + u64::from(byte - b'0');
        }
        Self::new(number)
    }
}

/// A number that is not a fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fencing token is a whole number from 1 to {}", FencingToken::MAX)]
pub struct InvalidToken {
    _private: (),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a token that JavaScript or Lua rounds to its neighbour.
    #[test]
    fn the_cap_is_fifteen_nines_and_exact_in_a_double() {
        let max = FencingToken::MAX.get();
        assert_eq!(max.to_string(), "9".repeat(15));
        assert!(max < 1 << 53);
        assert!(FencingToken::new(max).is_ok());
        assert!(FencingToken::new(max + 1).is_err());
        assert_eq!(FencingToken::MAX.next(), None);
    }

    /// Catches: two texts that are one token.
    #[test]
    fn only_canonical_text_is_a_token() {
        assert_eq!("34".parse(), FencingToken::new(34));
        for bad in [
            "",
            "0",
            "00",
            "034",
            "+5",
            "-1",
            " 7",
            "7 ",
            "5.0",
            "1e3",
            "٣",
            "1000000000000000",
        ] {
            assert!(bad.parse::<FencingToken>().is_err(), "{bad:?}");
        }
    }

    /// Catches: a token out of range that comes in by JSON.
    #[test]
    fn json_is_a_plain_number_in_range() {
        let token: FencingToken = serde_json::from_str("34").unwrap();
        assert_eq!(serde_json::to_string(&token).unwrap(), "34");
        for bad in ["0", "-1", "1000000000000000", "1.5", "\"34\"", "null"] {
            assert!(serde_json::from_str::<FencingToken>(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {}
}
