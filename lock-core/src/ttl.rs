use std::{fmt, time::Duration};

/// How long a lease lasts unless it is renewed: whole milliseconds, from 10 ms to 24 h.
///
/// The default is 10 s. A ttl must be longer than a few round trips to the lock service, or the
/// holder loses the lease at every short disturbance. After a holder has died, others wait until
/// its ttl is over.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use lock_core::Ttl;
///
/// const TTL: Ttl = Ttl::secs(30); // checked by the compiler
/// let configured = Ttl::new(Duration::from_millis(1500))?;
/// assert!(configured < TTL);
/// assert!(Ttl::new(Duration::from_millis(1)).is_err());
/// # Ok::<(), lock_core::InvalidTtl>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(Duration);

impl Ttl {
    /// The shortest lease, 10 ms.
    pub const MIN: Self = Self(Duration::from_millis(10));

    /// The longest lease, 24 h.
    pub const MAX: Self = Self(Duration::from_secs(24 * 60 * 60));

    /// Makes a time to live.
    ///
    /// # Errors
    /// [`InvalidTtl`] if `ttl` is below 10 ms, above 24 h or not whole milliseconds.
    pub const fn new(ttl: Duration) -> Result<Self, InvalidTtl> {
        let nanos = ttl.as_nanos();
        let whole = nanos.is_multiple_of(1_000_000);
        if whole && nanos >= Self::MIN.0.as_nanos() && nanos <= Self::MAX.0.as_nanos() {
            Ok(Self(ttl))
        } else {
            Err(InvalidTtl { ttl })
        }
    }

    /// Makes a time to live from whole seconds, for constants.
    ///
    /// # Panics
    /// If `seconds` is 0 or above 86 400 (24 h); in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn secs(seconds: u32) -> Self {
        match Self::new(Duration::from_secs(seconds as u64)) {
            Ok(ttl) => ttl,
            Err(_) => {
                panic!("a ttl is from 1 s to 86400 s: Ttl::new returns an error instead")
            }
        }
    }

    /// Makes a time to live from milliseconds, for constants.
    ///
    /// # Panics
    /// If `millis` is below 10 or above 86 400 000 (24 h); in a constant that is a compile error.
    #[must_use]
    #[track_caller]
    pub const fn millis(millis: u32) -> Self {
        match Self::new(Duration::from_millis(millis as u64)) {
            Ok(ttl) => ttl,
            Err(_) => {
                panic!("a ttl is from 10 ms to 86400000 ms: Ttl::new returns an error instead")
            }
        }
    }

    /// The duration.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }

    /// The duration in milliseconds.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

/// 10 s.
impl Default for Ttl {
    fn default() -> Self {
        Self::secs(10)
    }
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ttl({:?})", self.0)
    }
}

impl TryFrom<Duration> for Ttl {
    type Error = InvalidTtl;

    fn try_from(ttl: Duration) -> Result<Self, InvalidTtl> {
        Self::new(ttl)
    }
}

/// A duration that cannot be the length of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a ttl is whole milliseconds from 10 ms to 24 h, not {ttl:?}")]
pub struct InvalidTtl {
    ttl: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a duration that is cut off to whole milliseconds or to 32 bits.
    #[test]
    fn the_bounds_are_inclusive() {
        assert!(Ttl::new(Duration::from_millis(10)).is_ok());
        assert!(Ttl::new(Duration::from_secs(86_400)).is_ok());
        assert!(Ttl::new(Duration::from_millis(9)).is_err());
        assert!(Ttl::new(Duration::from_millis(86_400_001)).is_err());
        assert!(Ttl::new(Duration::from_micros(10_500)).is_err());
        assert!(Ttl::new(Duration::MAX).is_err());
    }

    /// Catches: seconds out of range that are cut off, or refused without the range.
    #[test]
    #[should_panic(expected = "a ttl is from 1 s to 86400 s:")]
    fn seconds_that_cannot_be_are_refused_with_the_range() {
        assert!(Ttl::secs(86_401) > Ttl::MAX);
    }
}
