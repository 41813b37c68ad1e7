use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};

use crate::Runtime;

/// The identity of a lease's holder: a random 128-bit nonce *per acquisition*, never per process.
///
/// The holder exists before the first byte is sent, so that an acquisition whose reply was lost can
/// find itself again. It is a **secret**: anybody who knows it can act as this holder. `Debug`
/// shows only its [fingerprint](Holder::fingerprint), there is no `Display`, and it is not
/// serialised by itself; [`Holder::expose`] is the only way to read it as text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Holder(u128);

impl Holder {
    /// The length of a [fingerprint](Holder::fingerprint), in hex digits.
    pub(crate) const FINGERPRINT_LEN: usize = 16;

    /// Draws a fresh holder from a cryptographically secure generator, seeded by the system.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random())
    }

    /// Draws a fresh holder from a runtime, as a lock manager does.
    #[must_use]
    pub fn draw(runtime: &dyn Runtime) -> Self {
        Self(runtime.random())
    }

    /// The secret as 32 lower-case hex digits. It must not get into logs, errors or metrics.
    #[must_use]
    pub fn expose(self) -> String {
        format!("{:032x}", self.0)
    }

    /// The secret as bytes, for signing it or for sending it in another form.
    #[must_use]
    pub const fn expose_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The first 16 hex digits of the [kept digest](Holder::kept_digest). They distinguish holders,
    /// and reveal nothing that a lock service or a store accepts.
    #[must_use]
    pub fn fingerprint(self) -> String {
        fingerprint_of(&self.digest())
    }

    /// 16 bytes of the secret's SHA-256 as 32 hex digits. Requests present this digest, so that the
    /// secret is in no log of a server.
    ///
    /// A lock service and a store accept its bearer as the holder, so it is a secret, too.
    #[must_use]
    pub fn digest(self) -> String {
        hex(&Sha256::digest(self.0.to_be_bytes())[..16])
    }

    /// The SHA-256 of the [digest](Holder::digest), as 64 hex digits. A store keeps it instead of
    /// the presented digest, so that a reader of its tables or backups cannot act as the holder.
    #[must_use]
    pub fn kept_digest(self) -> String {
        kept_digest_of(&self.digest())
    }
}

/// The kept digest of a presented text: its SHA-256 as 64 hex digits.
fn kept_digest_of(presented: &str) -> String {
    hex(&Sha256::digest(presented.as_bytes()))
}

/// Every request has a digest, and `format!` would be slow, because it treats each byte as a
/// number.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}

/// The fingerprint of a presented text: the first 16 hex digits of its SHA-256.
#[must_use]
pub fn fingerprint_of(presented: &str) -> String {
    let mut digest = kept_digest_of(presented);
    digest.truncate(Holder::FINGERPRINT_LEN);
    digest
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Holder(#{})", self.fingerprint())
    }
}

/// Accepts the text of [`Holder::expose`]: 32 lower-case hex digits.
impl FromStr for Holder {
    type Err = InvalidHolder;

    fn from_str(text: &str) -> Result<Self, InvalidHolder> {
        let digits = <&[u8; 32]>::try_from(text.as_bytes());
        let digits = digits.map_err(|_| InvalidHolder { _private: () })?;
        // Every request reads a holder. A branch on whether a random digit is a letter is predicted
        // wrongly half the time. Code without branches reads several digits with each instruction.
        let (mut values, mut wrong) = ([0; 32], 0);
        for (value, digit) in values.iter_mut().zip(digits) {
            let is_decimal = digit.wrapping_sub(b'0') < 10;
            let is_letter = digit.wrapping_sub(b'a') < 6;
            wrong |= u8::from(!(is_decimal | is_letter));
            *value = digit.wrapping_sub(if is_letter { b'a' - 10 } else { b'0' });
        }
        if wrong != 0 {
            return Err(InvalidHolder { _private: () });
        }
        let (eights, _) = values.as_chunks();
        let nonce = eights.iter().fold(0, |nonce, eight| {
            nonce << 32 | u128::from(of_eight_digits(*eight))
        });
        Ok(Self(nonce))
    }
}

/// The number that has these digits. The digits are joined to pairs, the pairs to fours, and the
/// fours to the number.
const fn of_eight_digits(values: [u8; 8]) -> u64 {
    let digits = u64::from_be_bytes(values);
    let pairs = (digits | digits >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    (fours | fours >> 16) & 0xffff_ffff
}

impl<'de> Deserialize<'de> for Holder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is not a holder. The error does not repeat the text, which may be a mistyped secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a holder is 32 lower-case hex digits")]
pub struct InvalidHolder {
    _private: (),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a log line that shows the secret, with which anybody can release the lease.
    #[test]
    fn debug_and_errors_never_show_the_secret() {
        let holder = Holder::random();
        assert!(!format!("{holder:?}").contains(&holder.expose()));
        assert!(!holder.expose().contains(&holder.fingerprint()));
        assert_eq!(holder.digest().len(), 32);
        assert!(!holder.digest().contains(&holder.fingerprint()));
        assert!(holder.kept_digest().starts_with(&holder.fingerprint()));
        let typo = format!("{}x", &holder.expose()[..31]);
        let error = typo.parse::<Holder>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains(&typo[..8]));
    }

    /// Catches: a kept digest that other languages cannot compute.
    #[test]
    fn the_kept_digest_is_the_sha256_of_the_presented_text() {
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(kept_digest_of("abc"), of_abc);
    }

    /// Catches: two texts for one holder, which differ when they are compared as text.
    #[test]
    fn only_its_own_text_is_a_holder() {
        let holder = Holder::random();
        assert_eq!(holder.expose().parse(), Ok(holder));
        for bad in [
            "",
            "0",
            &"g".repeat(32),
            &"A".repeat(32),
            &"0".repeat(33),
            &format!("+{}", "0".repeat(31)),
        ] {
            assert!(bad.parse::<Holder>().is_err(), "{bad:?}");
        }
    }
}
