//! The course of events for the clients: the same in both acts, step by step.

use std::time::Instant;

use tokio::sync::Notify;

use super::{
    act::{DEPOSIT_OF_CLIENT_1, DEPOSIT_OF_CLIENT_2, Scene},
    client_process::ClientProcess,
    hand::{Cue, Hand},
};
use crate::{
    events::{Act, ClientName, Story},
    worker::Step,
};
use palisade_cli::Failure;

/// The course of the story, before its verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// Whether every step was answered as expected.
    went: bool,
    /// Whether an update has to be lost without fencing. `None` if that depends on the visitor.
    loses: Option<bool>,
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

/// Plays the story up to its verdict: client 1 is stopped between its check and its write, for
/// longer than its lease.
///
/// # Errors
/// If the story cannot be played to its end.
pub(super) async fn play(scene: &mut Scene<'_>, mut hand: Hand) -> Result<Course, Failure> {
    let mut one = scene.start(ClientName::One)?;
    one.until(ready).await?;
    if hand.pauses().await == Cue::Kill {
        return go_on_after_kill(scene, one).await;
    }
    let stopped = scene.pause(&one).await?;
    // The stopped process does not read this order yet.
    one.go().await?;
    // Its request waits in the lock service until the lease of the stopped client has ended.
    let mut two = scene.start(ClientName::Two)?;
    let ended = Notify::new();
    let second = async {
        let mut last = two.until(ready_or_done).await?;
        if last != Step::WasDone {
            two.go().await?;
            last = two.until(answer).await?;
        }
        two.finish().await?;
        ended.notify_one();
        Ok(last)
    };
    let is_told = hand.has_fixed_course();
    let first = late_write(scene, one, hand, stopped, ended.notified());
    let (second, first) = tokio::try_join!(second, first)?;
    let had_nothing_to_do = second == Step::WasDone;
    let second_as_told = had_nothing_to_do || scene.acknowledge(&second, DEPOSIT_OF_CLIENT_2);
    let Some((one, first)) = first else {
        let loses = Some(false);
        return Ok(Course {
            went: second_as_told,
            loses,
        });
    };
    let late_as_told = settle(scene, one, &first).await?;
    Ok(Course {
        went: second_as_told && (late_as_told || !is_told),
        loses: is_told.then_some(true),
    })
}

/// The result of the late write of client 1 when it goes on; `None` if it is killed.
async fn late_write(
    scene: &Scene<'_>,
    mut one: ClientProcess,
    mut hand: Hand,
    stopped: Instant,
    other_ends: impl Future<Output = ()>,
) -> Result<Option<(ClientProcess, Step)>, Failure> {
    if hand.resumes(stopped, other_ends).await == Cue::Kill {
        scene.kill(one).await?;
        return Ok(None);
    }
    scene.resume(&one, stopped)?;
    let answer = one.until(answer).await?;
    Ok(Some((one, answer)))
}

/// Lets client 1 finish after the answer to its late write. Returns whether the answer was the
/// expected one.
async fn settle(
    scene: &mut Scene<'_>,
    mut one: ClientProcess,
    late: &Step,
) -> Result<bool, Failure> {
    let accepted = scene.acknowledge(late, DEPOSIT_OF_CLIENT_1);
    let inert = accepted || scene.balance().await? == scene.acknowledged;
    if !accepted {
        // A client goes on after a refusal. A depositor acquires a fresh lease, reads again, and
        // its deposit is stored. A runner of a job finds out that the job is done.
        match scene.director.story {
            Story::Deposits => {
                one.until(ready).await?;
                one.go().await?;
                scene.acknowledge(&one.until(answer).await?, DEPOSIT_OF_CLIENT_1);
            }
            Story::Jobs => one.until(was_done).await?,
        }
    }
    one.finish().await?;
    Ok(match scene.act {
        Act::Unfenced => accepted,
        Act::Fenced => inert && is_refusal(late, 412, "token-stale"),
    })
}

/// Client 1 dies at this point, and its lease is not given back. Client 2 waits for the end of that
/// lease.
async fn go_on_after_kill(scene: &mut Scene<'_>, one: ClientProcess) -> Result<Course, Failure> {
    scene.kill(one).await?;
    let mut two = scene.start(ClientName::Two)?;
    two.until(ready).await?;
    two.go().await?;
    let written = two.until(answer).await?;
    two.finish().await?;
    Ok(Course {
        went: scene.acknowledge(&written, DEPOSIT_OF_CLIENT_2),
        loses: Some(false),
    })
}

fn ready(step: Step) -> Option<()> {
    matches!(step, Step::Ready { .. }).then_some(())
}

/// The step `Ready`, or `WasDone`, because a job may be done already.
fn ready_or_done(step: Step) -> Option<Step> {
    matches!(step, Step::Ready { .. } | Step::WasDone).then_some(step)
}

fn was_done(step: Step) -> Option<()> {
    matches!(step, Step::WasDone).then_some(())
}

fn answer(step: Step) -> Option<Step> {
    matches!(step, Step::Written { .. } | Step::Refused { .. }).then_some(step)
}

/// Whether it was refused with this status and this kind of problem.
fn is_refusal(step: &Step, refused: u16, kind: &str) -> bool {
    matches!(step, Step::Refused { status, problem }
        if *status == refused && problem.ends_with(kind))
}
