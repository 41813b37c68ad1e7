//! Clients that go on for as long as a test: a leader, and jobs. They must never stop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fenced_jobs::Jobs;
use fenced_store::{FencedLockError, FencedLocks};
use lock_core::RetryPolicy;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::failover::{
    books::{Book, Books},
    crew::{PATIENCE, TTL},
};

/// The steps of each slot.
const STEPS: i64 = 4;

/// The work of a section, or of a step, beside its write.
const WORK: Duration = Duration::from_millis(20);

/// A leader, and jobs one after the other.
pub(crate) struct Members {
    /// How often the leader has written.
    leads: watch::Receiver<i64>,
    /// The slots that are done.
    slots: watch::Receiver<i64>,
    over: Arc<AtomicBool>,
    leader: JoinSet<()>,
    jobs: JoinSet<()>,
}

impl Members {
    pub(crate) fn spawn<DB: Books>(shop: &FencedLocks<DB>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (led, leads) = watch::channel(0);
        let (done, slots) = watch::channel(0);
        let (mut leader, mut jobs) = (JoinSet::new(), JoinSet::new());
        leader.spawn(lead(shop.clone(), led));
        jobs.spawn(work(shop.clone(), done, Arc::clone(&over)));
        Self {
            leads,
            slots,
            over,
            leader,
            jobs,
        }
    }

    /// Until both have done something from now on.
    pub(crate) async fn are_at_work(&self) {
        let now = Instant::now();
        tokio::join!(self.leads(now), self.works(now));
    }

    /// How long it takes until the leader writes.
    pub(crate) async fn leads(&self, back: Instant) -> Duration {
        let leads = self.leads.clone();
        changed(leads, "the leader writes", back).await
    }

    /// How long it takes until a slot is done.
    pub(crate) async fn works(&self, back: Instant) -> Duration {
        changed(self.slots.clone(), "a job is done", back).await
    }

    /// Ends both. Each step was stored once, and each write of the leader.
    pub(crate) async fn end<DB: Books>(mut self, shop: &FencedLocks<DB>) {
        self.leader.shutdown().await;
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.jobs.join_next().await {
            ended.unwrap();
        }
        let slots = *self.slots.borrow();
        let steps = DB::balance(shop.store(), Book::Job).await.unwrap();
        assert_eq!(steps, slots * STEPS, "of {slots} slots");
        let led = *self.leads.borrow();
        let stored = DB::balance(shop.store(), Book::Leader).await.unwrap();
        assert!(stored >= led, "{led} writes, and {stored} are stored");
    }
}

/// The sender is gone when its task has stopped.
async fn changed<T>(mut receiver: watch::Receiver<T>, what: &str, back: Instant) -> Duration {
    receiver.mark_unchanged();
    let changed = timeout(PATIENCE, receiver.changed()).await;
    let changed = changed.unwrap_or_else(|_| panic!("never: {what}"));
    changed.unwrap_or_else(|_| panic!("never again: {what}"));
    back.elapsed()
}

async fn lead<DB: Books>(shop: FencedLocks<DB>, led: watch::Sender<i64>) {
    let lead = shop.lead("crew").ttl(TTL);
    let ended = lead.run_through(FencedLockError::may_pass, async move |term| {
        loop {
            let mut tx = term.begin().await?;
            DB::add(&mut tx, Book::Leader).await?;
            tx.commit().await?;
            led.send_modify(|writes| *writes += 1);
            sleep(WORK).await;
        }
    });
    let ended: Result<(), FencedLockError> = ended.await;
    panic!("the leader has stopped: {ended:?}");
}

async fn work<DB: Books>(shop: FencedLocks<DB>, done: watch::Sender<i64>, over: Arc<AtomicBool>) {
    while !over.load(Ordering::Relaxed) {
        let slot = *done.borrow() + 1;
        let slot = format!("{slot}");
        let once = shop.once("crew", &*slot).ttl(TTL).wait(PATIENCE);
        let once = once.back_off(RetryPolicy::fixed(WORK));
        let ended = once.steps(async |job| {
            let mut steps = job.progress::<i64>()?.unwrap_or(0);
            while steps < STEPS {
                let step = job.step(async |tx| {
                    DB::add(tx, Book::Job).await?;
                    Ok::<_, FencedLockError>(steps + 1)
                });
                steps = step.await?;
                sleep(WORK).await;
            }
            Ok::<_, FencedLockError>(())
        });
        match ended.await {
            Ok(outcome) if outcome.is_done() => done.send_modify(|slots| *slots += 1),
            Ok(_) => sleep(WORK).await,
            Err(error) => {
                assert!(error.may_pass(), "a job has failed for good: {error:?}");
                sleep(WORK).await;
            }
        }
    }
}
