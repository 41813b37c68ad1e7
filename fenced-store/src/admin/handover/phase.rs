use std::fmt;

use lock_core::Issuer;

/// How far a handover had got when it failed. The text says that, and what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandoverPhase {
    /// Nothing was changed, except for a lease of the [probe](super::PROBE).
    Before,
    /// The old lock service was being retired: parts of it may grant no more.
    Retiring,
    /// The old lock service is retired. The new one may be lifted, and the store partly sealed.
    Retired,
    /// The same, but the old lock service is not retired: it is lost, or cannot be retired.
    NotRetired,
}

impl HandoverPhase {
    /// What to do if the store belongs to a third lock service, from which neither this handover
    /// nor the one in the other direction starts.
    pub(super) fn how_to_leave(self, current: &Issuer) -> String {
        let done = match self {
            Self::Before => return "nothing was changed".to_owned(),
            Self::Retiring => "the old one may grant no more",
            Self::Retired => "the old one grants no more",
            Self::NotRetired => "the new one may be lifted",
        };
        format!(
            "somebody else was faster, and {done}; hand over from \"{current}\" to the one that is \
             to be in place"
        )
    }
}

impl fmt::Display for HandoverPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self {
            Self::Before => return f.write_str("nothing was changed"),
            Self::Retiring => "the old one may grant no more",
            Self::Retired => "the old one grants no more",
            Self::NotRetired => "the new one may be lifted",
        };
        write!(
            f,
            "{done}; hand over again to go on, or in the other direction to turn back"
        )
    }
}
