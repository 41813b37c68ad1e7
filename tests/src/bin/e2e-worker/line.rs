use std::{error::Error, sync::Arc, time::Duration};

use clap::Args;
use lock_core::{
    LockManager,
    backend::{Runtime, TokioRuntime},
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{Lock, Talk, say};

/// Acquisitions of one resource, all by the same manager.
#[derive(Args)]
pub(crate) struct Line {
    #[command(flatten)]
    lock: Lock,
    /// How long each acquisition holds.
    #[arg(long)]
    hold_ms: u64,
}

/// Starts one more acquisition for each input line, and ends when the input and the last
/// acquisition have ended. They are numbered from 0.
pub(crate) async fn run(line: Line, mut talk: Talk) -> Result<(), Box<dyn Error>> {
    let locks = line.lock.connect().await?;
    say(&json!({ "ready": true }))?;
    let line = Arc::new(line);
    let mut turns = JoinSet::new();
    for number in 0.. {
        if !talk.told_to_go_on().await? {
            break;
        }
        turns.spawn(turn(Arc::clone(&line), locks.clone(), number));
    }
    while let Some(ended) = turns.join_next().await {
        ended?.map_err(|error| -> Box<dyn Error> { error })?;
    }
    Ok(())
}

async fn turn(
    line: Arc<Line>,
    locks: LockManager,
    number: usize,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let acquire = locks.acquire(line.lock.resource.as_str());
    let guard = acquire.ttl(line.lock.ttl()).await?;
    let token = guard.token();
    say(&json!({ "granted": number, "token": token, "at_ns": now_ns() }))?;
    tokio::time::sleep(Duration::from_millis(line.hold_ms)).await;
    let released = guard.release().await?;
    let released = format!("{released:?}");
    say(&json!({ "released": number, "token": token, "at_ns": now_ns(), "as": released }))?;
    Ok(())
}

/// The time by a clock that all processes of the machine share.
fn now_ns() -> u128 {
    TokioRuntime.now().since_origin().as_nanos()
}
