use std::{
    io::{self, Write},
    process,
};

use lock_core::FencingToken;
use serde::{Deserialize, Serialize};

use crate::client::WriteAnswer;

/// A worker's report to its parent: one line of JSON per step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub(crate) enum Step {
    /// The worker has the lease, with this `Fencing-Token` header.
    Acquired { token: FencingToken, header: String },
    /// The worker has read the balance.
    Read { balance: i64 },
    /// The worker has computed the new balance and has just seen that its lease is live. It writes
    /// when its parent orders it to.
    Ready { balance: i64 },
    /// The worker has noticed that its lease ended.
    LeaseLost,
    /// The job was done before: there is nothing to do.
    WasDone,
    /// The store accepted the write.
    Written { status: u16, fenced: bool },
    /// The write was refused. A depositor starts afresh.
    Refused { status: u16, problem: String },
    /// The worker cannot go on.
    Failed { server_lost: bool, message: String },
}

impl From<WriteAnswer> for Step {
    fn from(answer: WriteAnswer) -> Self {
        match answer {
            WriteAnswer::Accepted { status, fenced } => Self::Written { status, fenced },
            WriteAnswer::Refused { status, problem } => Self::Refused { status, problem },
        }
    }
}

/// Writes one step to stdout immediately.
pub(super) fn tell(step: &Step) {
    let line = serde_json::to_string(step).unwrap_or_default();
    let mut stdout = io::stdout().lock();
    if writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .is_err()
    {
        // The reader of stdout is gone, and so is the parent.
        process::exit(1);
    }
}
