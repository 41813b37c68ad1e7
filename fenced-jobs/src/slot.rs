use std::{fmt, str::FromStr};

use lock_core::{InvalidName, ResourceName};

/// One occasion for a job to run: a time of a schedule, or any text, such as the number of an
/// invoice.
///
/// A time is UTC in the form `2026-11-27T02:00:00Z`, so that the order of texts is the order of
/// times; with the feature `schedule` a slot can be made of a time of `jiff`. A slot that is no
/// time has no order. A slot has 1 to 256 bytes of visible ASCII without `"` and `\`, as the name
/// of a resource has.
///
/// # Examples
/// ```
/// use fenced_jobs::Slot;
///
/// let time: Slot = "2026-11-27T02:00:00Z".parse().unwrap();
/// assert!(time.is_time());
/// assert!(!"invoice:4711".parse::<Slot>().unwrap().is_time());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(ResourceName);

impl Slot {
    /// The slot as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether the slot has the form of a time of a schedule.
    #[must_use]
    pub fn is_time(&self) -> bool {
        fenced_store::jobs::is_time(self.as_str())
    }
}

#[cfg(feature = "schedule")]
impl From<jiff::Timestamp> for Slot {
    /// Parts of a second are cut off.
    fn from(time: jiff::Timestamp) -> Self {
        let text = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        // A year before 0 or after 9999 has another form, which is a legal name, too.
        Self(ResourceName::new(text).unwrap_or_else(|never| unreachable!("{never}")))
    }
}

impl FromStr for Slot {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        ResourceName::new(text).map(Self)
    }
}

impl TryFrom<&str> for Slot {
    type Error = InvalidName;

    fn try_from(text: &str) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl TryFrom<String> for Slot {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        ResourceName::new(text).map(Self)
    }
}

impl From<&Self> for Slot {
    fn from(slot: &Self) -> Self {
        slot.clone()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({:?})", self.as_str())
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
