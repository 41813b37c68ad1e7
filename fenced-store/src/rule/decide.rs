//! The store rule for databases whose own functions cannot hold it. Postgres has it in SQL
//! (`migrations/postgres`). The same test cases run against all of them.

use std::cmp::Ordering;

use lock_core::{FencingToken, Issuer, Sequencer};

use crate::{FenceError, HighWater};

/// A mark with the kept digest of the holder that claimed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    high_water: HighWater,
    holder: String,
}

impl Mark {
    pub(crate) const fn new(high_water: HighWater, holder: String) -> Self {
        Self { high_water, holder }
    }

    pub(crate) const fn high_water(&self) -> &HighWater {
        &self.high_water
    }
}

/// The knowledge of a store about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its mark.
    Marked(Mark),
    /// It has no mark. The floor is the greatest token of a mark that was forgotten.
    Unmarked {
        /// `None` if no mark was ever forgotten.
        floor: Option<FencingToken>,
    },
}

/// The work that a claim needs if it is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Raise the mark.
    Raise,
    /// No work, because the mark already shows this grant.
    Replay,
}

/// Whether a write of this grant is accepted. The mark has to show exactly this grant.
pub(crate) fn check(standing: &Standing, sequencer: &Sequencer) -> Result<(), FenceError> {
    match claim(standing, sequencer)? {
        Claim::Replay => Ok(()),
        Claim::Raise => Err(FenceError::not_claimed(
            sequencer.resource().clone(),
            sequencer.token(),
        )),
    }
}

/// Whether this grant may claim. Its token has to be above the mark, unless the mark already shows
/// this grant. Without a mark the token has to be above the floor.
pub(crate) fn claim(standing: &Standing, sequencer: &Sequencer) -> Result<Claim, FenceError> {
    let mark = match standing {
        Standing::Marked(mark) => mark,
        Standing::Unmarked { floor: Some(floor) } if sequencer.token() <= *floor => {
            return Err(FenceError::forgotten(
                sequencer.resource().clone(),
                sequencer.token(),
                *floor,
            ));
        }
        Standing::Unmarked { .. } => return Ok(Claim::Raise),
    };
    let high_water = mark.high_water.token();
    issuer(mark.high_water.issuer(), sequencer)?;
    match sequencer.token().cmp(&high_water) {
        Ordering::Greater => Ok(Claim::Raise),
        Ordering::Less => Err(FenceError::stale(
            sequencer.resource().clone(),
            sequencer.token(),
            high_water,
        )),
        Ordering::Equal if mark.holder == sequencer.holder().kept_digest() => Ok(Claim::Replay),
        Ordering::Equal => Err(FenceError::duplicate_token(
            sequencer.resource().clone(),
            sequencer.token(),
        )),
    }
}

/// Whether the token comes from the lock service whose tokens are accepted.
pub(crate) fn issuer(current: &Issuer, sequencer: &Sequencer) -> Result<(), FenceError> {
    if current == sequencer.issuer() {
        return Ok(());
    }
    Err(FenceError::wrong_issuer(
        sequencer.resource().clone(),
        sequencer.issuer().clone(),
        current.clone(),
    ))
}
