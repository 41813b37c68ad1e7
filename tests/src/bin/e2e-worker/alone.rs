use std::error::Error;

use clap::Args;
use tokio::process::Command;

use crate::Lock;

/// A command under a lease, and no other process that watches this one.
#[derive(Args)]
pub(crate) struct Alone {
    #[command(flatten)]
    lock: Lock,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Acquires, runs the command, and ends it when the lease is lost: the control of `palisade run`.
pub(crate) async fn run(alone: &Alone) -> Result<(), Box<dyn Error>> {
    let locks = alone.lock.connect().await?;
    let guard = locks
        .acquire(alone.lock.resource.as_str())
        .ttl(alone.lock.ttl())
        .await?;
    let (program, arguments) = alone.command.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    let mut child = command.args(arguments).kill_on_drop(true).spawn()?;
    tokio::select! {
        biased;
        ended = child.wait() => drop(ended?),
        lost = guard.lost() => return Err(lost.into()),
    }
    guard.release().await?;
    Ok(())
}
