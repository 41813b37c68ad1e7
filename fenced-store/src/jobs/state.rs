use std::time::{Duration, SystemTime};

use lock_core::FencingToken;
use serde::de::DeserializeOwned;

use crate::FenceError;

/// What the store knows of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotState {
    /// Whether it is done, or due.
    pub standing: Standing,
    /// How many steps are committed.
    pub steps: u64,
    /// What the last of them has saved, as JSON.
    pub progress: Option<String>,
    /// How many attempts have failed since the first, or since an operator asked for another.
    pub attempts: u64,
    /// Why the last of them failed.
    pub last_error: Option<String>,
}

/// Whether a slot is done, or due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// Nobody has done it.
    Due,
    /// It has failed, and is due again after this time.
    BackingOff(Duration),
    /// It was done.
    Done {
        /// The token of the grant under which it was done.
        token: FencingToken,
        /// When, by the clock of the database.
        at: SystemTime,
    },
    /// It is older than what the store remembers of the job, and counts as done.
    Forgotten,
}

impl SlotState {
    /// What the last committed step has saved; `None` before the first.
    ///
    /// # Errors
    /// [`FenceError::Db`] with an error of decoding if it was saved as another type.
    pub fn progress<T: DeserializeOwned>(&self) -> Result<Option<T>, FenceError> {
        let decode = |text: &String| serde_json::from_str(text);
        self.progress
            .as_ref()
            .map(decode)
            .transpose()
            .map_err(|error| sqlx::Error::Decode(error.into()).into())
    }
}
