use std::time::Instant;

use tokio::sync::Notify;

use super::{Course, answer, is_refusal, kill, ready};
use crate::{
    events::{Act, ClientName},
    failure::Failure,
    scenario::{
        act::{DEPOSIT_OF_CLIENT_1, DEPOSIT_OF_CLIENT_2, Scene},
        client_process::ClientProcess,
        hand::{Cue, Hand},
    },
    worker::{Part, Step},
};

pub(super) async fn play(scene: &mut Scene<'_>, mut hand: Hand) -> Result<Course, Failure> {
    let mut one = scene.start(ClientName::One, Part::Deposit)?;
    one.until(ready).await?;
    if hand.pauses().await == Cue::Kill {
        return kill::go_on(scene, one).await;
    }
    let stopped = scene.pause(&one).await?;
    // It does not receive that yet.
    one.go().await?;
    // Its request waits in the lock service until the lease of the stopped client has ended.
    let mut two = scene.start(ClientName::Two, Part::Deposit)?;
    let ended = Notify::new();
    let second = async {
        two.until(ready).await?;
        two.go().await?;
        let answer = two.until(answer).await?;
        two.finish().await?;
        ended.notify_one();
        Ok(answer)
    };
    let is_told = hand.is_told();
    let first = late_write(scene, one, hand, stopped, ended.notified());
    let (second, first) = tokio::try_join!(second, first)?;
    let second_as_told = scene.acknowledge(&second, DEPOSIT_OF_CLIENT_2);
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

/// The result of the late write of client 1 when it goes on; nothing if it is killed instead.
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

/// Lets client 1 finish after the answer to its late write, and says whether that was the expected
/// answer.
pub(super) async fn settle(
    scene: &mut Scene<'_>,
    mut one: ClientProcess,
    late: &Step,
) -> Result<bool, Failure> {
    let accepted = scene.acknowledge(late, DEPOSIT_OF_CLIENT_1);
    let inert = accepted || scene.balance().await? == scene.acknowledged;
    if !accepted {
        // A refusal is not a dead end: a fresh lease, a fresh read, and the deposit arrives.
        one.until(ready).await?;
        one.go().await?;
        scene.acknowledge(&one.until(answer).await?, DEPOSIT_OF_CLIENT_1);
    }
    one.finish().await?;
    Ok(match scene.act {
        Act::Unfenced => accepted,
        Act::Fenced => inert && is_refusal(late, 412, "token-stale"),
    })
}
