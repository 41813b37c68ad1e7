use lock_core::{FencingToken, Issuer, ResourceName};

/// The reason why a [`FencedCell`](super::FencedCell) refused a grant. Nothing changed. No error
/// shows a holder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A newer grant has claimed the cell. This holder has lost its lease, whatever it believes.
    #[error("stale fencing token {presented}: the cell has seen {high_water}, acquire afresh")]
    Stale {
        /// The token that was presented.
        presented: FencingToken,
        /// The token of the mark.
        high_water: FencingToken,
    },
    /// Another holder claimed the same token. The lock service issued it twice.
    #[error(
        "fencing token {presented} was claimed by another holder: \
         the lock service issued it twice, acquire afresh"
    )]
    DuplicateToken {
        /// The token that was presented.
        presented: FencingToken,
    },
    /// The token is above the mark, because it is not claimed yet.
    #[error("fencing token {presented} is not claimed: claim it once, right after acquiring")]
    NotClaimed {
        /// The token that was presented.
        presented: FencingToken,
    },
    /// The token comes from another lock service than the mark.
    #[error("the cell takes tokens of the lock service \"{current}\", not of \"{presented}\"")]
    WrongIssuer {
        /// The issuer that was presented.
        presented: Issuer,
        /// The issuer of the mark.
        current: Issuer,
    },
    /// The token is for another resource. Tokens of two resources cannot be compared.
    #[error("the cell is protected by the lock \"{current}\", not by \"{presented}\"")]
    WrongResource {
        /// The resource that was presented.
        presented: ResourceName,
        /// The resource of the mark.
        current: ResourceName,
    },
}
