use lock_core::{FencingToken, InvalidName};

use super::{FencingHeader, USUAL_MAX_LEN};

/// The fault in the value of a `Fencing-Token` header. The error never repeats the value, which
/// contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The value is longer than [`FencingHeader::MAX_LEN`].
    #[error(
        "the value is longer than {USUAL_MAX_LEN} bytes, or than {} with an Ed25519 signature",
        FencingHeader::MAX_LEN
    )]
    TooLong,
    /// The value does not have the form of a token with parameters.
    #[error("unexpected byte or end at byte {at}")]
    Syntax {
        /// The offset, in bytes.
        at: usize,
    },
    /// The token or `exp` is out of range or not in its shortest form.
    #[error(
        "{part} is not a whole number from 1 to {} without sign and leading zeros",
        FencingToken::MAX
    )]
    Number {
        /// The name of the part.
        part: &'static str,
    },
    /// The value has a parameter that the grammar does not have.
    #[error("unknown parameter at byte {at}")]
    UnknownParameter {
        /// The offset of its name, in bytes.
        at: usize,
    },
    /// A parameter is there twice.
    #[error("parameter {name} is given twice")]
    Repeated {
        /// Its name.
        name: &'static str,
    },
    /// A required parameter is missing.
    #[error("parameter {name} is missing")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// The holder is not 32 lower-case hex digits.
    #[error("hld is not 32 lower-case hex digits")]
    Holder,
    /// The key id has a length or a byte that is not allowed.
    #[error("kid is not a letter and up to 31 letters, digits, '-', '_' or '.'")]
    KeyId,
    /// The signature is neither 16 nor 64 bytes in canonical base64.
    #[error("sig is not 16 or 64 bytes in padded base64")]
    Signature,
    /// The resource or the issuer is not a legal name.
    #[error(transparent)]
    Name(#[from] InvalidName),
}
