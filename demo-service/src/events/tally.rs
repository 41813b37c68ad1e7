use lock_core::FencingToken;
use serde::Serialize;

use super::{Event, What};

/// The sum of one act over all runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tally {
    pub(crate) runs: u32,
    /// Runs in which an acknowledged deposit is missing from the balance, or in which the job was
    /// not done exactly once.
    pub(crate) lost_updates: u32,
    /// Writes with a token older than one already granted that changed the balance.
    pub(crate) stale_writes_accepted: u32,
    /// Writes with a token older than one already granted that were refused.
    pub(crate) stale_writes_rejected: u32,
    /// Runs that went as expected.
    pub(crate) runs_as_told: u32,
    /// All tokens granted, in the order of the grants.
    pub(crate) tokens: Vec<FencingToken>,
}

impl Tally {
    /// Counts one act of one run.
    pub(crate) fn add(&mut self, scene: &[Event]) {
        self.runs += 1;
        let mut newest = None;
        for event in scene {
            match event.what {
                What::Granted { token, .. } => {
                    self.tokens.push(token);
                    newest = std::cmp::max(newest, Some(token));
                }
                What::WriteAccepted {
                    token: Some(token), ..
                } => {
                    self.stale_writes_accepted += u32::from(Some(token) < newest);
                }
                What::WriteRefused { token, .. } => {
                    self.stale_writes_rejected += u32::from(token.is_some() && token < newest);
                }
                What::Verdict {
                    lost_update,
                    as_told,
                    ..
                } => {
                    self.lost_updates += u32::from(lost_update);
                    self.runs_as_told += u32::from(as_told);
                }
                _ => {}
            }
        }
    }

    /// Whether every run went as expected.
    pub(crate) const fn all_as_told(&self) -> bool {
        self.runs > 0 && self.runs_as_told == self.runs
    }
}
