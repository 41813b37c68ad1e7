//! One client of the scenario: a process of its own that deposits into an account under a lease.
//!
//! It behaves like a careful client. It waits for the lease in the lock service, renews it in the
//! background every third of its length, reads, computes, and makes sure right before its write
//! that it still has the lease. None of this helps if the process is stopped between that check and
//! the write: only the store can detect that.
//!
//! It reports each step on stdout as a line of JSON and waits for a line on stdin before it writes,
//! so that it can be stopped exactly there. It ends when stdin closes, so it never outlives its
//! parent.

mod knowledge;
mod section;
mod step;

use std::{process::ExitCode, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    sync::mpsc,
};

pub(crate) use self::step::Step;
use self::{section::Worker, step::tell};
use crate::events::{Act, ClientName, Story};
use palisade_cli::Failure;

/// The order to a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Base URL of the gateway.
    pub(crate) gateway: String,
    pub(crate) client: ClientName,
    /// The act, which determines the endpoint for writes.
    pub(crate) act: Act,
    /// The story that it plays.
    pub(crate) story: Story,
    /// The account for the deposit, or the account that counts how often the job was done.
    pub(crate) account: String,
    pub(crate) deposit: i64,
    /// Length of the lease.
    pub(crate) ttl: Duration,
}

/// Plays the client to its end.
///
/// # Errors
/// [`Failure::Usage`] if the text is no job.
pub(crate) async fn run(job: &str) -> Result<ExitCode, Failure> {
    die_with_parent();
    let job: Job = serde_json::from_str(job).map_err(|error| Failure::Usage(error.to_string()))?;
    let (order, orders) = mpsc::channel(1);
    let result = tokio::select! {
        biased;
        result = Worker::deposit(job, orders) => result,
        () = pass_on_orders(order) => return Ok(ExitCode::FAILURE),
    };
    Ok(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&Step::Failed {
                server_lost: error.server_lost(),
                message: error.to_string(),
            });
            ExitCode::FAILURE
        }
    })
}

/// Returns when stdin is closed, that is when the parent is gone.
async fn pass_on_orders(order: mpsc::Sender<()>) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(_)) = lines.next_line().await {
        if order.send(()).await.is_err() {
            return;
        }
    }
}

/// Asks the system to kill this process when its parent dies, because a stopped process cannot
/// notice that stdin was closed. POSIX wakes an orphaned process group, but not in every container;
/// Linux has a call for it. (Linux watches the *thread* of the parent that started this process:
/// the scenario starts clients on its main thread.)
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        tracing::warn!(%error, "this process may stay behind if its parent is killed");
    }
}
