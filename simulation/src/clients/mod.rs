//! What clients do. Each file is a kind of work; `me.rs` is the client that does it.

mod edge;
mod jobs;
mod leader;
mod leases;
mod me;
mod operator;
mod presenting;
mod section;

use fenced_store::FencedLockError;
use lock_core::{ErrorKind, backend::BoxFuture};
use lock_testing::DropAt;

pub(crate) use self::me::{Me, Surroundings};
use crate::{
    judge::act::{Act, How, WorkId},
    plan::{Task, Work},
};

/// The result of a piece of work.
type Worked = Result<How, FencedLockError>;

/// Does a piece of work, as far as it is not dropped.
pub(crate) async fn work(me: &Me, id: WorkId, plan: Work) {
    me.act(Act::Begins {
        work: id,
        task: plan.task,
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
            how_of(&error)
        }
    };
    me.act(Act::Ends { work: id, how });
}

fn task(me: &Me, id: WorkId, plan: Work) -> BoxFuture<'_, Worked> {
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
        Task::Edge => Box::pin(edge::requests(me, id, plan)),
        Task::Inspect => Box::pin(operator::inspect(me, plan)),
    }
}

fn how_of(error: &FencedLockError) -> How {
    match error {
        FencedLockError::Lock(error) if error.kind() == ErrorKind::WaitTimeout => How::Held,
        error if error.is_fenced() => How::Fenced,
        _ => How::Failed,
    }
}
