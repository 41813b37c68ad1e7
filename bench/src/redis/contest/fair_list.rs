//! A common way to build a fair queue: a list of waiters, and a sorted set of their deadlines.

use std::{sync::LazyLock, time::Duration};

use lock_core::{Clock, SystemClock};
use redis::Script;
use tokio::time::timeout;

use super::{Job, contender::Contender, wire::Wire};
use crate::figure::BoxError;

static ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/fair_acquire.lua")));
static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/fair_release.lua")));

const TTL_MS: &str = "10000";

/// How long a waiter that does not come back keeps its place at the head.
const WAIT_MS: &str = "5000";

/// The algorithm of Redisson's fair lock and its translations, with a token, but without
/// remembering releases in case they are sent again: the head is told when it may try, and comes
/// back with another round trip. Clients tell the time.
pub(super) struct FairList {
    wire: Wire,
    process: u32,
    keys: [String; 4],
}

impl FairList {
    pub(super) async fn connect(job: &Job) -> Result<Self, BoxError> {
        let key = |what: &str| format!("{{{}}}:{what}", job.resource);
        let channel = format!("{}:{}", key("free"), job.process);
        // One more place, for the one that keeps the others waiting at the start.
        let wire = Wire::connect(&job.url, &channel, job.waiters + 1).await?;
        Ok(Self {
            wire,
            process: job.process,
            keys: [
                key("lock"),
                key("waiters"),
                key("deadlines"),
                key("counter"),
            ],
        })
    }

    fn holder(&self, waiter: u32) -> String {
        format!("{}:{waiter}", self.process)
    }

    async fn run(&self, script: &Script, arguments: &[&str]) -> Result<i64, BoxError> {
        let keys = self.keys.each_ref().map(String::as_str);
        Ok(self.wire.run(script, &keys, arguments).await?)
    }
}

impl Contender for FairList {
    /// The token.
    type Lease = u64;

    async fn acquire(&self, waiter: u32) -> Result<u64, BoxError> {
        let holder = self.holder(waiter);
        loop {
            let now = now_ms();
            let answer = self
                .run(&ACQUIRE, &[&holder, TTL_MS, WAIT_MS, &now])
                .await?;
            match u64::try_from(answer) {
                Ok(token) => return Ok(token),
                Err(_) => {
                    let left = Duration::from_millis(answer.unsigned_abs());
                    // Whether it was woken or its time is over, it tries again.
                    timeout(left, self.wire.woken(waiter as usize)).await.ok();
                }
            }
        }
    }

    fn token(lease: &u64) -> u64 {
        *lease
    }

    async fn release(&self, waiter: u32, _lease: u64) -> Result<(), BoxError> {
        match self
            .run(&RELEASE, &[&self.holder(waiter), &now_ms()])
            .await?
        {
            1 => Ok(()),
            _ => Err("the lock was lost".into()),
        }
    }
}

fn now_ms() -> String {
    SystemClock.unix_time().as_millis().to_string()
}
