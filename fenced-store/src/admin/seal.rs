use lock_core::Issuer;

use super::Reason;

/// The order to give a store and its marks another issuer, and why.
#[derive(Clone, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Seal {
    /// The issuer whose tokens were accepted so far.
    pub from: Issuer,
    /// The issuer whose tokens are accepted from now on.
    pub to: Issuer,
    pub reason: Reason,
}
