//! One client of the scenario: a process of its own that deposits into an account under a lease.
//!
//! It behaves like a careful client. It waits for the lease in the lock service, renews it in the
//! background every third of its length, reads, computes, and makes sure that the lease is still
//! its own right before it writes. None of this helps if the process is stopped between that check
//! and the write: only the store can detect that.
//!
//! It reports each step on stdout as a line of JSON and waits for a line on stdin before it writes,
//! so that it can be stopped exactly there. It ends when stdin closes: it never outlives its
//! parent.

mod forger;
mod knowledge;
mod part;
mod section;
mod step;

use std::process::ExitCode;

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    sync::mpsc,
};

pub(crate) use self::{part::Part, step::Step};
use self::{section::Worker, step::tell};
use crate::cli::WorkerArgs;

/// Plays the client to its end.
pub(crate) async fn run(args: WorkerArgs) -> ExitCode {
    die_with_parent();
    let (order, orders) = mpsc::channel(1);
    let playing = async {
        match args.part {
            Part::Deposit => Worker::deposit(args, orders).await,
            Part::Forge => forger::forge(args, orders).await,
        }
    };
    let result = tokio::select! {
        result = playing => result,
        () = pass_on_orders(order) => return ExitCode::FAILURE,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&Step::Failed {
                server_lost: error.server_lost(),
                message: error.to_string(),
            });
            ExitCode::FAILURE
        }
    }
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

/// A stopped process cannot notice that stdin was closed. POSIX wakes an orphaned process group,
/// but not in every container; Linux can be asked directly. (It watches the parent's *thread* that
/// started us: the scenario starts clients on its main thread.)
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        tracing::warn!(%error, "this process may stay behind if its parent is killed");
    }
}
