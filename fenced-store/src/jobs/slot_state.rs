use std::time::{Duration, SystemTime};

use lock_core::FencingToken;
use serde::de::DeserializeOwned;

use crate::{FenceError, dialect::Operations};

/// The state of a slot in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotState {
    /// Whether the slot is done, or due.
    pub standing: Standing,
    /// The number of committed steps.
    pub steps: u64,
    /// The progress that the last of these steps has saved, as JSON.
    pub progress: Option<String>,
    /// The number of attempts that have failed: since the first one, or since an operator asked for
    /// another.
    pub attempts: u64,
    /// The error of the last failed attempt.
    pub last_error: Option<String>,
}

/// Whether a slot is done, or due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// The slot is not done, and may run now.
    Due,
    /// An attempt has failed. The slot is due again after this time.
    BackingOff(Duration),
    /// The slot is done.
    Done {
        /// The token of the grant under which it was done.
        token: FencingToken,
        /// The time at which it was done, by the clock of the database.
        at: SystemTime,
    },
    /// The slot is older than all slots of the job that the store remembers. It counts as done.
    Forgotten,
}

impl SlotState {
    /// Reads the columns from this one on, in the order in which the functions of Postgres return
    /// them. A row that another program has written with values out of range is read, too.
    pub(crate) fn of<DB: Operations>(row: &DB::Row, first: usize) -> Result<Self, FenceError> {
        let number = |column| -> Result<u64, FenceError> {
            Ok(u64::try_from(DB::number(row, first + column)?).unwrap_or(0))
        };
        let text = |column| -> Result<Option<String>, FenceError> {
            let text = DB::shown_text(row, first + column)?;
            Ok((!text.is_empty()).then_some(text))
        };
        let standing = match DB::text(row, first)?.as_str() {
            "done" => Standing::Done {
                token: nearest_token(number(1)?),
                at: SystemTime::UNIX_EPOCH + Duration::from_millis(number(2)?),
            },
            "forgotten" => Standing::Forgotten,
            "backing off" => Standing::BackingOff(Duration::from_millis(number(7)?)),
            "due" => Standing::Due,
            other => {
                let why = format!("a slot cannot be {other:?}");
                return Err(sqlx::Error::Decode(why.into()).into());
            }
        };
        Ok(Self {
            standing,
            steps: number(3)?,
            progress: text(4)?,
            attempts: number(5)?,
            last_error: text(6)?,
        })
    }

    /// The progress that the last committed step has saved; `None` before the first step.
    ///
    /// # Errors
    /// [`FenceError::Db`] with an error of decoding if the progress was saved as another type.
    pub fn progress<T: DeserializeOwned>(&self) -> Result<Option<T>, FenceError> {
        let decode = |text: &String| serde_json::from_str(text);
        self.progress
            .as_ref()
            .map(decode)
            .transpose()
            .map_err(|error| sqlx::Error::Decode(error.into()).into())
    }
}

/// The token that is nearest to a number.
fn nearest_token(number: u64) -> FencingToken {
    let number = number.clamp(FencingToken::MIN.get(), FencingToken::MAX.get());
    FencingToken::new(number).unwrap_or(FencingToken::MAX)
}
