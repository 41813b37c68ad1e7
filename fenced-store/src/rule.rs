//! The store rule for databases whose own functions cannot hold it. Postgres has it in SQL
//! (`migrations/postgres`); the same test cases are run against all of them.

use std::cmp::Ordering;

use lock_core::{Issuer, Sequencer};

use crate::{FenceError, HighWater};

/// A mark with the digest of the holder that claimed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    high_water: HighWater,
    holder: String,
}

impl Mark {
    pub(crate) const fn new(high_water: HighWater, holder: String) -> Self {
        Self { high_water, holder }
    }
}

/// What to do for a claim that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Raise the mark.
    Raise,
    /// Nothing: the mark already shows this grant.
    Replay,
}

/// Whether a write of this grant is accepted: the mark must show this very grant.
pub(crate) fn check(mark: Option<&Mark>, sequencer: &Sequencer) -> Result<(), FenceError> {
    match claim(mark, sequencer)? {
        Claim::Replay => Ok(()),
        Claim::Raise => Err(FenceError::not_claimed(
            sequencer.resource().clone(),
            sequencer.token(),
        )),
    }
}

/// Whether this grant may claim: its token must be above the mark, or the mark its own.
pub(crate) fn claim(mark: Option<&Mark>, sequencer: &Sequencer) -> Result<Claim, FenceError> {
    let Some(mark) = mark else {
        return Ok(Claim::Raise);
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
        Ordering::Equal if mark.holder == sequencer.holder().digest() => Ok(Claim::Replay),
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

#[cfg(test)]
mod tests {
    use lock_core::{FencingToken, Holder, ResourceName};
    use proptest::prelude::*;

    use super::*;

    fn grant(token: u64, holder: u8, issuer: &str) -> Sequencer {
        Sequencer::new(
            Issuer::new(issuer).unwrap(),
            ResourceName::new("account:42").unwrap(),
            FencingToken::new(token).unwrap(),
            format!("{holder:032x}").parse::<Holder>().unwrap(),
        )
    }

    fn mark_of(grant: &Sequencer) -> Mark {
        let high_water = HighWater {
            token: grant.token(),
            issuer: grant.issuer().clone(),
        };
        Mark::new(high_water, grant.holder().digest())
    }

    proptest! {
        /// However claims arrive, the mark never falls, and at most the last one that was
        /// accepted may write.
        #[test]
        fn the_mark_never_falls_and_admits_its_own_grant_only(
            claims in proptest::collection::vec((1_u64..6, 0_u8..3, 0_u8..4), 1..40)
        ) {
            let mut mark: Option<Mark> = None;
            let grants: Vec<_> = claims
                .iter()
                .map(|(token, holder, issuer)| {
                    grant(*token, *holder, if *issuer == 0 { "other" } else { "redis" })
                })
                .collect();
            for presented in &grants {
                let before = mark.clone();
                match claim(mark.as_ref(), presented) {
                    Ok(Claim::Raise) => {
                        let before = before.map(|mark| mark.high_water.token());
                        prop_assert!(before.is_none_or(|before| before < presented.token()));
                        mark = Some(mark_of(presented));
                    }
                    Ok(Claim::Replay) => prop_assert_eq!(&before, &Some(mark_of(presented))),
                    Err(error) => prop_assert!(error.is_fenced() && before.is_some()),
                }
                for other in &grants {
                    let admitted = check(mark.as_ref(), other).is_ok();
                    prop_assert_eq!(admitted, mark == Some(mark_of(other)));
                }
            }
        }
    }
}
