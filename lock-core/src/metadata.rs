use std::{fmt, sync::Arc};

/// A note that a holder leaves with its lease, such as a host name. It is for people to read, and
/// programs must not decide by it.
///
/// At most [`Metadata::MAX_LEN`] bytes of UTF-8 without control characters. Everybody who may
/// inspect the resource can read it, so do not put secrets into it.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let memory = lock_core::memory::MemoryBackend::default();
/// # let locks = lock_core::LockManager::builder().build(memory)?;
/// let guard = locks.acquire("account:42").metadata("node 7, pid 4711").await?;
/// let seen = locks.inspect("account:42").await?;
/// let holder = seen.holder.expect("it is held");
/// assert_eq!(holder.metadata.as_ref().map(|note| note.as_str()), Some("node 7, pid 4711"));
/// # drop(guard);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Metadata(Arc<str>);

impl Metadata {
    /// The greatest length, in bytes.
    pub const MAX_LEN: usize = 1024;

    /// Checks a note.
    ///
    /// # Errors
    /// [`InvalidMetadata`] if it is too long or has control characters.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidMetadata> {
        let text = text.into();
        if text.len() > Self::MAX_LEN {
            return Err(InvalidMetadata("it is longer than 1024 bytes"));
        }
        if text.contains(char::is_control) {
            return Err(InvalidMetadata("it has control characters"));
        }
        Ok(Self(text))
    }

    /// Makes a note of any text that a lock service keeps, also if another program wrote it.
    /// Control characters become escapes such as `\n`, and a text that is too long is cut off.
    #[must_use]
    pub fn escaped(text: &str) -> Self {
        let mut shown = String::with_capacity(text.len());
        for character in text.chars() {
            let length = shown.len();
            if character.is_control() {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
            if shown.len() > Self::MAX_LEN {
                shown.truncate(length);
                break;
            }
        }
        Self(shown.into())
    }

    /// The note.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for Metadata {
    type Error = InvalidMetadata;

    fn try_from(text: &str) -> Result<Self, InvalidMetadata> {
        Self::new(text)
    }
}

impl TryFrom<String> for Metadata {
    type Error = InvalidMetadata;

    fn try_from(text: String) -> Result<Self, InvalidMetadata> {
        Self::new(text)
    }
}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that cannot be a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata cannot be kept: {0}")]
pub struct InvalidMetadata(&'static str);

/// Never happens. It allows a note that is already checked to be passed where a text is accepted.
impl From<std::convert::Infallible> for InvalidMetadata {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a note that was stored by another program and hides the lease from operators.
    #[test]
    fn any_text_can_be_shown() {
        assert_eq!(Metadata::escaped("a\nb\u{7f}").as_str(), "a\\nb\\u{7f}");
        for text in ["", "node 7", &"\u{1b}".repeat(2000), &"\u{fc}".repeat(2000)] {
            let shown = Metadata::escaped(text);
            assert_eq!(Metadata::new(shown.as_str()), Ok(shown.clone()));
        }
    }
}
