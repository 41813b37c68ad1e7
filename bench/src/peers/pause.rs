//! The outcome of the write of a holder that is stopped until its lease has ended and the next
//! holder has written.

use std::time::Duration;

use e2e::signal;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{
    libraries::{Library, Toolchains},
    program::Program,
};
use crate::error::BoxError;

/// Every service can keep a lease or a session of this length.
const TTL: Duration = Duration::from_secs(2);

/// How long the next holder may take: several times the lease.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LateWrite {
    /// The write replaced the write of the next holder.
    Stored,
    Refused,
    /// The lock has no lease, so no other client got the lock while the holder was stopped.
    NobodyElse,
}

pub(super) async fn late_write(
    toolchains: &Toolchains,
    library: &Library,
    url: &str,
) -> Result<LateWrite, BoxError> {
    let folder = tempfile::tempdir()?;
    let account = folder.path().join("account");
    let start = || {
        let mut command = toolchains.command(library);
        command
            .args(["pause", "1", &TTL.as_millis().to_string(), url])
            .arg(&account);
        Program::start(command)
    };
    let mut slow = start()?;
    slow.expect("ready").await?;
    let id = signal::pid(slow.id()?)?;
    signal::pause(id)?;
    let mut next = start()?;
    if timeout(PATIENCE, next.expect("ready")).await.is_err() {
        signal::resume(id)?;
        return Ok(LateWrite::NobodyElse);
    }
    next.tell_to_go_on().await?;
    next.expect("stored").await?;
    let written = std::fs::read(&account)?;
    slow.tell_to_go_on().await?;
    signal::resume(id)?;
    let said = slow.line().await?.ok_or("it ended without a word")?;
    if said.starts_with("refused: ") {
        return Ok(LateWrite::Refused);
    }
    if said == "stored" && std::fs::read(&account)? != written {
        return Ok(LateWrite::Stored);
    }
    Err(format!("said {said:?}, and that is not what the file says").into())
}
