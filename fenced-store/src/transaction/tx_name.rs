use std::fmt;

use lock_core::backend::Runtime;

/// The name of one transaction. The commit uses the name to find out whether the connection is
/// still in that transaction.
///
/// The name is random, so that no other transaction has left the same name behind. The token cannot
/// be the name, because all transactions of a holder have the same token.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct TxName {
    name: u64,
    /// Whether there is a note of the transaction for the triggers, which the commit has to remove.
    #[cfg(feature = "sqlite")]
    is_noted: bool,
}

impl TxName {
    /// The prefix of all names.
    pub(crate) const PREFIX: &str = "fenced_";

    pub(crate) fn draw(runtime: &dyn Runtime) -> Self {
        Self {
            name: (runtime.random() >> 64) as u64,
            #[cfg(feature = "sqlite")]
            is_noted: false,
        }
    }

    #[cfg(feature = "sqlite")]
    pub(crate) const fn noted(self) -> Self {
        let is_noted = true;
        Self { is_noted, ..self }
    }

    #[cfg(feature = "sqlite")]
    pub(crate) const fn is_noted(self) -> bool {
        self.is_noted
    }
}

/// Letters, digits and underscores: a valid identifier in every database.
impl fmt::Display for TxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:016x}", Self::PREFIX, self.name)
    }
}
