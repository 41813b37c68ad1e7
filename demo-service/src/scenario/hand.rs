use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::{
    sync::mpsc,
    time::{sleep_until, timeout},
};

/// Who stops client 1, and lets it go on.
#[derive(Debug)]
pub(crate) enum Hand {
    /// The scenario: stopped as soon as it is about to write, and for so long at least.
    Clock(Duration),
    /// A visitor of the live page, at any time.
    Visitor(mpsc::Receiver<Cue>),
}

/// What a visitor wants to happen to client 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cue {
    Pause,
    Resume,
}

/// A visitor who went away lets the story go on, after this.
const PATIENCE: Duration = Duration::from_secs(120);

impl Hand {
    /// Returns when client 1 is to be stopped.
    pub(super) async fn pauses(&mut self) {
        match self {
            Self::Clock(_) => {}
            Self::Visitor(cues) => wait_for(Cue::Pause, cues).await,
        }
    }

    /// Returns when client 1, which was stopped then, is to go on. The clock lets the other client
    /// come to its end first.
    pub(super) async fn resumes(&mut self, stopped: Instant, other_ends: impl Future<Output = ()>) {
        match self {
            Self::Clock(pause) => {
                other_ends.await;
                sleep_until((stopped + *pause).into()).await;
            }
            Self::Visitor(cues) => wait_for(Cue::Resume, cues).await,
        }
    }

    /// Whether the story is bound to go as it is told.
    pub(super) const fn is_told(&self) -> bool {
        matches!(self, Self::Clock(_))
    }
}

async fn wait_for(cue: Cue, cues: &mut mpsc::Receiver<Cue>) {
    let told = async { while cues.recv().await.is_some_and(|told| told != cue) {} };
    if timeout(PATIENCE, told).await.is_err() {
        tracing::info!(?cue, "nobody says so: the story goes on");
    }
}
