use std::fmt;

use lock_core::Issuer;

/// The progress of a handover when it failed. The text describes it, and the next step of the
/// operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandoverPhase {
    /// The store was not changed. The new lock service may have granted a lease of the
    /// [probe](super::PROBE).
    Before,
    /// The store accepts no claim of the old lock service any more. Marks may not be sealed.
    Sealing,
}

impl HandoverPhase {
    /// The advice if the store belongs to a third lock service. Neither this handover nor the one
    /// in the other direction starts from that service.
    pub(super) fn how_to_leave(self, current: &Issuer) -> String {
        match self {
            Self::Before => "nothing was changed".to_owned(),
            Self::Sealing => format!(
                "another handover was faster, and some marks may be sealed; hand over from \
                 \"{current}\" to the lock service that you want"
            ),
        }
    }
}

impl fmt::Display for HandoverPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "nothing was changed",
            Self::Sealing => {
                "the store accepts no claim of the old one, and some marks may not be sealed; \
                 hand over again to go on, or in the other direction to turn back"
            }
        })
    }
}
