//! What happens to the clients: each story is played in both acts, step by step the same.

mod forgery;
mod kill;
mod pause;
mod race;

use serde::{Deserialize, Serialize};

use super::{act::Scene, hand::Hand};
use crate::{events::Act, failure::Failure, worker::Step};

/// One of the stories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Story {
    /// Client 1 is stopped between its check and its write, for longer than its lease.
    #[default]
    Pause,
    /// Client 1 is killed while it holds the lease.
    Kill,
    /// Both clients are sure that they hold the lease, and write at the same time.
    Race,
    /// Client 2 does not ask for a lease: it invents tokens.
    Forgery,
}

/// The course of a story, before its verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// Whether every step was answered as expected.
    pub(super) went: bool,
    /// Whether an update has to be lost without fencing. `None` if that is up to the visitor.
    pub(super) loses: Option<bool>,
}

impl Story {
    /// Plays it up to the verdict.
    ///
    /// # Errors
    /// If it cannot be played to its end.
    pub(super) async fn play(self, scene: &mut Scene<'_>, hand: Hand) -> Result<Course, Failure> {
        match self {
            Self::Pause => pause::play(scene, hand).await,
            Self::Kill => kill::play(scene).await,
            Self::Race => race::play(scene).await,
            Self::Forgery => forgery::play(scene).await,
        }
    }
}

impl Course {
    /// Whether this is the expected result of the act.
    pub(super) fn as_told(self, act: Act, lost_update: bool) -> bool {
        self.went
            && match act {
                Act::Fenced => !lost_update,
                Act::Unfenced => self.loses.is_none_or(|loses| loses == lost_update),
            }
    }
}

fn ready(step: Step) -> Option<()> {
    matches!(step, Step::Ready { .. }).then_some(())
}

fn answer(step: Step) -> Option<Step> {
    matches!(step, Step::Written { .. } | Step::Refused { .. }).then_some(step)
}

/// Whether it was refused with this status and this kind of problem.
fn is_refusal(step: &Step, refused: u16, kind: &str) -> bool {
    matches!(step, Step::Refused { status, problem }
        if *status == refused && problem.ends_with(kind))
}
