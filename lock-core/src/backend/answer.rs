use std::time::Duration;

use crate::{FencingToken, Holder, Lease, Metadata, ResourceName, holder::fingerprint_of};

/// The answer to an acquire. A resource that another holder has is a value, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an attempt is granted or it is not"
)]
#[must_use = "an attempt may not have been granted"]
pub enum Attempt<T> {
    /// The lease is ours.
    Granted(T),
    /// Another holder has it. [`Attempt::held`] makes one.
    Held {
        /// The time after which the present lease ends unless it is renewed.
        retry_after: Duration,
    },
}

impl<T> Attempt<T> {
    /// Another holder has it; the present lease ends after this time unless it is renewed.
    pub const fn held(retry_after: Duration) -> Self {
        Self::Held { retry_after }
    }

    /// The grant, if there is one.
    #[must_use]
    pub fn granted(self) -> Option<T> {
        match self {
            Self::Granted(grant) => Some(grant),
            Self::Held { .. } => None,
        }
    }

    /// Converts the grant.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Attempt<U> {
        match self {
            Self::Granted(grant) => Attempt::Granted(f(grant)),
            Self::Held { retry_after } => Attempt::Held { retry_after },
        }
    }
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the lease was ours or it was not")]
#[must_use = "the lease may not be held any more"]
pub enum Renewed {
    /// The lease goes on.
    Renewed(Lease),
    /// This holder and token have no living lease; nothing changed.
    NotHolder,
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the lease was ours or it was not")]
pub enum Released {
    /// The lease was ours and has ended.
    Released,
    /// The lease had already ended, or belongs to another holder. Nothing changed.
    NotHolder,
}

/// The answer to a release by force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the lease was there or it was not")]
pub enum Forced {
    /// The lease with that token has ended.
    Ended {
        /// A token that no holder gets. It is greater than the token of the lease that was ended,
        /// and less than any token that was granted since.
        ///
        /// A store that claims this token refuses the former holder from then on.
        revocation: FencingToken,
    },
    /// No lease with that token lives; nothing changed.
    NotHeld,
}

/// The result of a look at a resource. It may be out of date when it arrives, and it contains no
/// secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "lock services build it")]
pub struct Inspection {
    /// The present holder, if there is one.
    pub holder: Option<HolderView>,
    /// How many acquisitions wait, if the backend knows.
    pub waiters: Option<u64>,
}

impl Inspection {
    /// Puts an inspection together.
    #[must_use]
    pub const fn new(holder: Option<HolderView>) -> Self {
        Self {
            holder,
            waiters: None,
        }
    }

    /// Says how many acquisitions wait.
    #[must_use]
    pub const fn waiters(mut self, waiters: u64) -> Self {
        self.waiters = Some(waiters);
        self
    }
}

/// One entry of a list of held resources.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "lock services build it")]
pub struct Listed {
    /// A resource that is held or waited for.
    pub resource: ResourceName,
    /// The result of a look at it.
    pub inspection: Inspection,
}

impl Listed {
    /// A resource and the result of a look at it.
    #[must_use]
    pub const fn new(resource: ResourceName, inspection: Inspection) -> Self {
        Self {
            resource,
            inspection,
        }
    }
}

/// The part of a holder's state that others may see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "lock services build it")]
pub struct HolderView {
    /// [`Holder::fingerprint`], never the holder itself.
    pub fingerprint: String,
    /// The holder's token.
    pub token: FencingToken,
    /// The time that is left of the lease.
    pub remaining: Duration,
    /// The note that the holder left.
    pub metadata: Option<Metadata>,
}

impl HolderView {
    /// Describes this holder for others.
    #[must_use]
    pub fn new(holder: Holder, token: FencingToken, remaining: Duration) -> Self {
        Self::of_digest(&holder.digest(), token, remaining)
    }

    /// The same, for a backend that knows only the holder's [`Holder::digest`].
    #[must_use]
    pub fn of_digest(digest: &str, token: FencingToken, remaining: Duration) -> Self {
        Self::of_fingerprint(&fingerprint_of(digest), token, remaining)
    }

    /// The same, for a backend that knows only the holder's [`Holder::fingerprint`], or, for a
    /// client of another kind, a name that is no secret. At most 16 characters of it are shown.
    #[must_use]
    pub fn of_fingerprint(fingerprint: &str, token: FencingToken, remaining: Duration) -> Self {
        let fingerprint = fingerprint.chars().take(Holder::FINGERPRINT_LEN).collect();
        Self {
            fingerprint,
            token,
            remaining,
            metadata: None,
        }
    }

    /// Adds the note that the holder left.
    #[must_use]
    pub fn metadata(mut self, metadata: Option<Metadata>) -> Self {
        self.metadata = metadata;
        self
    }
}
