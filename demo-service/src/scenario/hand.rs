use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::{
    sync::mpsc,
    time::{sleep_until, timeout},
};

/// The source of the orders that stop client 1 and resume it.
#[derive(Debug)]
pub(crate) enum Hand {
    /// The scenario: client 1 is stopped as soon as it is about to write, for at least this time.
    Clock(Duration),
    /// A visitor of the live page, at any time.
    Visitor(mpsc::Receiver<Cue>),
}

/// A visitor's order for client 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cue {
    Pause,
    Resume,
    Kill,
}

/// If a visitor goes away, the story goes on after this time.
const PATIENCE: Duration = Duration::from_secs(120);

impl Hand {
    /// Waits for the next order to stop or kill client 1, and returns it.
    pub(super) async fn pauses(&mut self) -> Cue {
        match self {
            Self::Clock(_) => Cue::Pause,
            Self::Visitor(cues) => either(Cue::Pause, cues).await,
        }
    }

    /// Waits for the order to resume or kill client 1, which was stopped at `stopped`, and returns
    /// it. The clock lets the other client finish first.
    pub(super) async fn resumes(
        &mut self,
        stopped: Instant,
        other_ends: impl Future<Output = ()>,
    ) -> Cue {
        match self {
            Self::Clock(pause) => {
                other_ends.await;
                sleep_until((stopped + *pause).into()).await;
                Cue::Resume
            }
            Self::Visitor(cues) => either(Cue::Resume, cues).await,
        }
    }

    /// Whether the story has a fixed course.
    pub(super) const fn has_fixed_course(&self) -> bool {
        matches!(self, Self::Clock(_))
    }
}

/// Waits for this cue, or for the order to kill client 1, and returns the one that comes first.
async fn either(usual: Cue, cues: &mut mpsc::Receiver<Cue>) -> Cue {
    let told = async {
        while let Some(cue) = cues.recv().await {
            if cue == usual || cue == Cue::Kill {
                return cue;
            }
        }
        usual
    };
    timeout(PATIENCE, told).await.unwrap_or_else(|_| {
        tracing::info!(?usual, "no order came in time: the story goes on");
        usual
    })
}
