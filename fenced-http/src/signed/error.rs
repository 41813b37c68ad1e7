/// The fault of a key or a key ring. The error never repeats a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// The key id has a length or a byte that is not allowed.
    #[error("a key id is a letter and up to 31 letters, digits, '-', '_' or '.'")]
    Id,
    /// The audience has a length or a byte that is not allowed.
    #[error("an audience is 1 to 64 letters, digits, '-', '_', '.' or ':'")]
    Audience,
    /// The secret does not have the form of a secret.
    #[error("a secret is 32 bytes in padded base64")]
    Secret,
    /// The secret was not drawn at random: too few of its bytes are different.
    #[error("a secret is random, with at least 16 different bytes of 32: draw a new one")]
    Guessable,
    /// The public key does not have the form of a public key.
    #[cfg(feature = "ed25519")]
    #[error("a public key is a point of edwards25519, 32 bytes in padded base64")]
    PublicKey,
    /// There is no key to sign with.
    #[error("a key ring has at least one key")]
    NoKey,
    /// Two keys of a ring have the same id.
    #[error("the key id {id} is given twice")]
    Repeated {
        /// The id.
        id: String,
    },
    /// Two keys of a ring have the same secret.
    #[error("the keys {id} and {other} have the same secret: draw another for one of them")]
    Shared {
        /// One of the keys.
        id: String,
        /// The other key, which may be of another kind.
        other: String,
    },
}
