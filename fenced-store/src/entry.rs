use std::fmt;

/// The name of one begun transaction, by which its commit knows that it is still the same one.
///
/// Random, so that nothing else can have left it behind: the token would not do, because other
/// transactions of its holder have the same.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Entry {
    name: u64,
    /// Whether triggers find a note of it, which its commit has to take away.
    #[cfg(feature = "sqlite")]
    is_noted: bool,
}

impl Entry {
    /// What the names begin with.
    pub(crate) const PREFIX: &str = "fenced_";

    pub(crate) fn random() -> Self {
        Self {
            name: rand::random(),
            #[cfg(feature = "sqlite")]
            is_noted: false,
        }
    }

    #[cfg(feature = "sqlite")]
    pub(crate) const fn noted(self, is_noted: bool) -> Self {
        Self { is_noted, ..self }
    }

    #[cfg(feature = "sqlite")]
    pub(crate) const fn is_noted(self) -> bool {
        self.is_noted
    }
}

/// Letters, digits and underscores: an identifier in every database.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:016x}", Self::PREFIX, self.name)
    }
}
