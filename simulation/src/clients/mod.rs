//! The work of clients. Each file is a kind of work; `me.rs` is the client that does it.

mod checks;
mod edge;
mod jobs;
mod leader;
mod leases;
mod me;
mod operator;
mod presenting;
mod section;

use fenced_store::{FenceError, FencedLockError};
use lock_core::{ErrorKind, backend::BoxFuture};
use lock_testing::DropAt;

pub(crate) use self::me::{Me, Surroundings};
use crate::{
    judge::act::{Act, How, WorkId},
    plan::{Task, Work},
    store::Ledger,
};

/// The result of a piece of work.
type Worked = Result<How, FencedLockError>;

/// Does a piece of work, as far as it is not dropped.
pub(crate) async fn work<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) {
    me.act(Act::Begins {
        work: id,
        task: plan.task,
        renews: plan.renews(),
    });
    let task = task(me, id, plan);
    let worked = match plan.dropped {
        None => Some(task.await),
        Some((at, true)) => DropAt::woken(at.into()).poll(task).await,
        Some((at, false)) => DropAt::waiting(at.into()).poll(task).await,
    };
    let how = match worked {
        None => How::Dropped,
        Some(Ok(how)) => how,
        Some(Err(error)) => {
            me.tell(|| format!("fails in work {id}: {error}"));
            me.saw(name_of(&error));
            how_of(&error)
        }
    };
    me.act(Act::Ends { work: id, how });
}

fn task<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> BoxFuture<'_, Worked> {
    match plan.task {
        Task::Section => Box::pin(section::section(me, id, plan)),
        Task::Try => Box::pin(section::attempt(me, id, plan)),
        Task::Both => Box::pin(section::both(me, id, plan)),
        Task::Lease => Box::pin(leases::lease(me, id, plan)),
        Task::Given => Box::pin(leases::given(me, id, plan)),
        Task::Owner => Box::pin(leases::owner(me, id, plan)),
        Task::Together => Box::pin(leases::together(me, id, plan)),
        Task::Once => Box::pin(jobs::once(me, plan)),
        Task::Steps => Box::pin(jobs::steps(me, plan)),
        Task::Lead => Box::pin(leader::lead(me, plan)),
        Task::Force => Box::pin(operator::force(me, plan)),
        Task::Edge if S::IS_SEEN => Box::pin(edge::requests(me, id, plan)),
        Task::Edge | Task::Inspect => Box::pin(operator::inspect(me, plan)),
    }
}

/// The name of the situation in which a piece of work has failed.
const fn name_of(error: &FencedLockError) -> &'static str {
    match error {
        FencedLockError::Lock(error) => match error.kind() {
            ErrorKind::WaitTimeout => "wait over",
            ErrorKind::Unavailable => "lock service unavailable",
            ErrorKind::Lost => "lease lost",
            ErrorKind::Released => "acquisition ended by its release",
            ErrorKind::ShutDown => "acquisition ended by a shutdown",
            _ => "another error of the lock service",
        },
        FencedLockError::Store(error) => match error {
            FenceError::Stale { .. } => "grant was stale",
            FenceError::DuplicateToken { .. } => "two holders had one token",
            FenceError::LeaseLost(_) => "lease was lost before a transaction",
            FenceError::Busy { .. } => "store was busy",
            FenceError::Serialization { .. } => "transactions met",
            FenceError::CommitUnknown { .. } => "commit unknown",
            FenceError::Aborted => "transaction was ended",
            FenceError::Db { .. } => "connection to the store broken",
            _ => "another error of the store",
        },
        _ => "another error",
    }
}

fn how_of(error: &FencedLockError) -> How {
    match error {
        FencedLockError::Lock(error) if error.kind() == ErrorKind::WaitTimeout => How::Held,
        error if error.is_fenced() => How::Fenced,
        _ => How::Failed,
    }
}
