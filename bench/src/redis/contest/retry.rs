//! Publish, then try: the release is announced to every process, and one waiter of each tries.

use std::{sync::LazyLock, time::Duration};

use redis::Script;
use tokio::time::timeout;

use super::{Job, contender::Contender, wire::Wire};
use crate::figure::BoxError;

static ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/retry_acquire.lua")));
static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/retry_release.lua")));

const TTL_MS: &str = "10000";

/// The algorithm of Redisson's plain lock, without reentrancy, but with a token.
pub(super) struct Retry {
    wire: Wire,
    process: u32,
    lease: String,
    counter: String,
    channel: String,
}

impl Retry {
    pub(super) async fn connect(job: &Job) -> Result<Self, BoxError> {
        let channel = format!("{{{}}}:free", job.resource);
        Ok(Self {
            wire: Wire::connect(&job.url, &channel, 1).await?,
            process: job.process,
            lease: format!("{{{}}}:lease", job.resource),
            counter: format!("{{{}}}:counter", job.resource),
            channel,
        })
    }
}

/// A token, and its holder.
pub(super) struct Lease {
    token: u64,
    holder: String,
}

impl Contender for Retry {
    type Lease = Lease;

    async fn acquire(&self, waiter: u32) -> Result<Lease, BoxError> {
        let holder = format!("{}:{waiter}", self.process);
        let keys = [self.lease.as_str(), &self.counter];
        loop {
            let answer = self.wire.run(&ACQUIRE, &keys, &[&holder, TTL_MS]).await?;
            match u64::try_from(answer) {
                Ok(token) => return Ok(Lease { token, holder }),
                Err(_) => {
                    let left = Duration::from_millis(answer.unsigned_abs());
                    // Whether it was woken or the lease ran out, it tries again.
                    timeout(left, self.wire.woken(0)).await.ok();
                }
            }
        }
    }

    fn token(lease: &Lease) -> u64 {
        lease.token
    }

    async fn release(&self, _waiter: u32, lease: Lease) -> Result<(), BoxError> {
        let keys = [self.lease.as_str(), &self.channel];
        match self.wire.run(&RELEASE, &keys, &[&lease.holder]).await? {
            1 => Ok(()),
            _ => Err("the lease was lost".into()),
        }
    }
}
