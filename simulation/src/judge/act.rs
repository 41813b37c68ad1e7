use std::time::Duration;

use fenced_store::FenceError;
use lock_core::backend::Moment;

use crate::{
    edge::{Door, Flaw},
    plan::Task,
};

/// The number of a piece of work in a schedule.
pub(crate) type WorkId = u32;

/// The number of a write in a schedule.
pub(crate) type WriteId = u64;

/// A deed of a client, or something that it learns. All moments are true time.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// A piece of work begins.
    Begins {
        work: WorkId,
        task: Task,
        /// The watchdog renews its lease, as long as the guard lives.
        renews: bool,
    },
    /// The client asks for a lease.
    Asks { work: WorkId, resource: String },
    /// The client has a lease.
    Holds {
        work: WorkId,
        resource: String,
        token: u64,
        /// How long, by the client's clock.
        left: Duration,
        /// Its token is claimed in the store.
        is_claimed: bool,
        /// The work may share the lease with another hold.
        is_shared: bool,
    },
    /// The client believes that it still holds a lease.
    StillHolds {
        resource: String,
        token: u64,
        left: Duration,
    },
    /// The client has released a lease. `None` if the outcome is unknown.
    Released {
        resource: String,
        token: u64,
        was_held: Option<bool>,
        /// The client knew that the lease was lost.
        saw_loss: bool,
        is_shared: bool,
    },
    /// The store has refused a grant before anything was written.
    Refused { resource: String, token: u64 },
    /// The client has read a row of this resource.
    Reads { resource: String, count: u64 },
    /// The client has put a row of this name into its transaction.
    Puts { write: WriteId, name: String },
    /// The client is about to commit a write.
    Writes { write: WriteId, token: u64 },
    /// The commit has this outcome.
    Wrote { write: WriteId, outcome: Outcome },
    /// A job has this outcome. `Some(token)` if the job is done under this token.
    Job {
        row: String,
        ran: bool,
        done: Option<u64>,
    },
    /// A leader is at work.
    Leads {
        resource: String,
        token: u64,
        left: Duration,
    },
    /// The client has claimed a token in the store.
    Claimed { resource: String, token: u64 },
    /// The client sends a request to the service behind the edge.
    Requests {
        request: WriteId,
        token: u64,
        flaw: Option<Flaw>,
        door: Door,
    },
    /// The handler behind the edge has got a request, or a copy of one.
    Handles {
        request: WriteId,
        /// The write that it makes of the request.
        write: WriteId,
        /// The resource in the path.
        about: String,
        /// The resource of the token that has passed the layer.
        resource: String,
        /// The token under which it writes.
        token: u64,
    },
    /// An answer of the service behind the edge.
    Answered {
        request: WriteId,
        write: Option<WriteId>,
        status: u16,
        accepted: Option<u64>,
        /// The client takes the write as fenced.
        is_believed: bool,
    },
    /// An unfenced client writes a count that is greater by one than the count it has read.
    Unfenced { resource: String, read: u64 },
    /// A piece of work has ended.
    Ends { work: WorkId, how: How },
}

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There is a receipt.
    Committed,
    /// The client does not know whether the write is committed.
    Unknown,
    /// The store has refused the grant.
    Refused,
    /// The commit failed, and nothing of the write is stored.
    Failed,
}

/// The end of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum How {
    /// The work was done.
    Done,
    /// Another holder had the lease.
    Held,
    /// The work was refused as stale, or its lease was lost.
    Fenced,
    /// It failed.
    Failed,
    /// It was dropped.
    Dropped,
}

/// The value of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Row {
    /// How often it was written.
    pub(crate) count: u64,
    /// The token under which it was written last.
    pub(crate) token: u64,
    /// The last write.
    pub(crate) write: WriteId,
    /// The steps of the job that it belongs to.
    pub(crate) steps: u64,
}

impl Outcome {
    /// The outcome of a commit with this result.
    pub(crate) fn of<T>(committed: Result<T, &FenceError>) -> Self {
        match committed {
            Ok(_) => Self::Committed,
            Err(FenceError::CommitUnknown { .. }) => Self::Unknown,
            Err(error) if error.is_fenced() => Self::Refused,
            Err(_) => Self::Failed,
        }
    }
}

impl Row {
    /// The row after one more write.
    pub(crate) const fn next(self, token: u64, write: WriteId) -> Self {
        Self {
            count: self.count + 1,
            token,
            write,
            ..self
        }
    }
}

/// A step of the store, as an observer beside it sees it.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// A mark was raised.
    Mark {
        resource: String,
        token: u64,
        /// The client whose message has raised it, if that is known.
        by: Option<u32>,
    },
    /// A row was written. `mark` is the mark of its resource.
    Row {
        name: String,
        resource: String,
        row: Row,
        mark: u64,
    },
}

/// A promise that a schedule has broken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// The name of the promise, as in `docs/guarantees.md`.
    pub promise: &'static str,
    /// When, in true time.
    pub at: Moment,
    /// The deed that broke it.
    pub what: String,
}
