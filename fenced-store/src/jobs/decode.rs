use std::time::{Duration, SystemTime};

use lock_core::FencingToken;

use super::{SlotState, Standing};
use crate::{FenceError, dialect::sealed::Operations};

impl SlotState {
    /// The columns from this one on, as the functions of Postgres name them. A row that somebody
    /// else has written can be read, too.
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
}

/// The token that is nearest to a number.
fn nearest_token(number: u64) -> FencingToken {
    let number = number.clamp(FencingToken::MIN.get(), FencingToken::MAX.get());
    FencingToken::new(number).unwrap_or(FencingToken::MAX)
}
