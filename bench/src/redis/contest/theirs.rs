//! The peer in Rust.

use rslock::Lock;

use super::{Job, contender::Contender};
use crate::{figure::BoxError, redis::rslock::Rslock};

pub(super) struct Theirs {
    locks: Rslock,
    resource: String,
}

impl Theirs {
    pub(super) fn new(job: &Job) -> Self {
        Self {
            locks: Rslock::new(&job.url),
            resource: job.resource.clone(),
        }
    }
}

impl Contender for Theirs {
    type Lease = Lock;

    async fn acquire(&self, _waiter: u32) -> Result<Lock, BoxError> {
        Ok(self.locks.acquire(&self.resource).await?)
    }

    fn token(_: &Lock) -> u64 {
        0
    }

    async fn release(&self, _waiter: u32, lease: Lock) -> Result<(), BoxError> {
        self.locks.release(&lease).await;
        Ok(())
    }
}
