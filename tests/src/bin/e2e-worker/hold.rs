use std::error::Error;

use serde_json::json;

use crate::{Lock, Talk, say};

/// Acquires, reports it, and releases at a line of input.
pub(crate) async fn run(lock: &Lock, mut talk: Talk) -> Result<(), Box<dyn Error>> {
    let locks = lock.connect().await?;
    let guard = locks
        .acquire(lock.resource.as_str())
        .ttl(lock.ttl())
        .await?;
    say(&json!({ "acquired": guard.token() }))?;
    if talk.told_to_go_on().await? {
        let lost = guard.remaining().is_err();
        let released = guard.release().await?;
        say(&json!({ "lost": lost, "released": format!("{released:?}") }))?;
    }
    Ok(())
}
