use serde::Serialize;

use crate::events::{Act, Recording, Tally};

/// The sums of a scenario, as printed by `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Summary {
    pub(crate) as_told: bool,
    pub(crate) lock: String,
    pub(crate) store: String,
    pub(crate) ttl_ms: u64,
    pub(crate) pause_ms: u64,
    pub(crate) elapsed_ms: u64,
    pub(crate) unfenced: Tally,
    pub(crate) fenced: Tally,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) picture: Option<String>,
}

impl Summary {
    /// Adds up a recording.
    pub(crate) fn of(recording: &Recording, elapsed_ms: u64) -> Self {
        let tally = |act| {
            let mut tally = Tally::default();
            for run in 1..=recording.runs {
                tally.add(&recording.scene(run, act));
            }
            tally
        };
        let (unfenced, fenced) = (tally(Act::Unfenced), tally(Act::Fenced));
        Self {
            as_told: unfenced.all_as_told() && fenced.all_as_told(),
            lock: recording.lock.clone(),
            store: recording.store.clone(),
            ttl_ms: recording.ttl_ms,
            pause_ms: recording.pause_ms,
            elapsed_ms,
            unfenced,
            fenced,
            picture: None,
        }
    }
}
