use lock_core::{FencingToken, ResourceName};

use super::{AdminError, Reason};

/// The order to set a mark by hand: the present mark, the new one, and the reason.
///
/// The order names the present mark. So an order for another mark, or an order that is carried out
/// twice, changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    resource: ResourceName,
    expected: FencingToken,
    to: FencingToken,
    reason: Reason,
}

impl Reset {
    /// Raises a mark. From then on tokens up to `to` are refused, including the token of the
    /// present holder.
    ///
    /// A mark above every token that the lock service will ever issue locks the resource
    /// permanently.
    ///
    /// # Errors
    /// [`AdminError::NotARaise`] if `to` is not above `expected`.
    pub fn raise(
        resource: ResourceName,
        expected: FencingToken,
        to: FencingToken,
        reason: Reason,
    ) -> Result<Self, AdminError> {
        if to <= expected {
            return Err(AdminError::NotARaise { expected, to });
        }
        Ok(Self {
            resource,
            expected,
            to,
            reason,
        })
    }

    /// Lowers a mark: the remedy for a mark that was poisoned with an absurd token.
    ///
    /// **This lets stale holders back in.** Any client that ever got a token above `to` may claim
    /// it and write: a client that was paused for a week, or a request that waits in a queue. Make
    /// sure that every client above `to` is gone. Lower the mark as little as possible: to the
    /// greatest token that the lock service has really issued.
    ///
    /// # Errors
    /// [`AdminError::NotALowering`] if `to` is not below `expected`.
    pub fn lower(
        resource: ResourceName,
        expected: FencingToken,
        to: FencingToken,
        reason: Reason,
    ) -> Result<Self, AdminError> {
        if to >= expected {
            return Err(AdminError::NotALowering { expected, to });
        }
        Ok(Self {
            resource,
            expected,
            to,
            reason,
        })
    }

    /// The resource whose mark is set.
    #[must_use]
    pub const fn resource(&self) -> &ResourceName {
        &self.resource
    }

    /// The mark that has to be there now.
    #[must_use]
    pub const fn expected(&self) -> FencingToken {
        self.expected
    }

    /// The new mark.
    #[must_use]
    pub const fn to(&self) -> FencingToken {
        self.to
    }

    /// The reason.
    pub(crate) const fn reason(&self) -> &Reason {
        &self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_not_lowered_by_mistake() {
        let name = || ResourceName::new("account:42").unwrap();
        let (less, more) = (
            FencingToken::new(33).unwrap(),
            FencingToken::new(34).unwrap(),
        );
        let reason = || Reason::new("poisoned").unwrap();
        for (expected, to) in [(more, less), (more, more)] {
            let raise = Reset::raise(name(), expected, to, reason());
            assert!(matches!(raise, Err(AdminError::NotARaise { .. })));
        }
        for (expected, to) in [(less, more), (more, more)] {
            let lower = Reset::lower(name(), expected, to, reason());
            assert!(matches!(lower, Err(AdminError::NotALowering { .. })));
        }
        assert!(Reset::raise(name(), less, more, reason()).is_ok());
        assert!(Reset::lower(name(), more, less, reason()).is_ok());
    }
}
