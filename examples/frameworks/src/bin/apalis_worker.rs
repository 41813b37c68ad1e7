//! A worker of apalis whose queue gives a task out twice: `apalis_worker postgres://localhost/bank`
//!
//! Queues deliver at least once: a worker that is paused for too long loses its task to another
//! worker, and then both go on. A task that is marked in the transaction of its effect is done
//! once.
use std::{error::Error, time::Duration};

use apalis::prelude::*;
use palisade::jobs::{JobOutcome, Jobs};
use palisade::store::{FencedLockError, PgFencedLocks, PgFencedStore};

#[derive(Clone, Debug)]
struct Interest {
    day: &'static str,
}

/// The slot is the name of the task, which all copies of the task have.
async fn credit(task: Interest, bank: Data<PgFencedLocks>) -> Result<(), BoxDynError> {
    // The worker runs several tasks at the same time. Tasks of one job wait for each other.
    let wait = Duration::from_secs(30);
    let once = bank.once("interest", task.day).wait(wait);
    let outcome = once.run(async |tx| {
        sqlx::query("UPDATE accounts SET balance = balance + balance / 100")
            .execute(&mut **tx)
            .await?;
        Ok::<_, FencedLockError>(())
    });
    match outcome.await? {
        JobOutcome::Ran((), receipt) => println!("{} ran under {}", task.day, receipt.token()),
        JobOutcome::Done { token, .. } => println!("{} was done under {token}", task.day),
        // After an error apalis tries again later.
        other => return Err(format!("not now: {other:?}").into()),
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1).ok_or("usage: .. DATABASE_URL")?;
    let store = PgFencedStore::new(sqlx::PgPool::connect(&url).await?);
    store.migrate().await?;
    let bank = palisade::open(store).await?;

    let mut queue = MemoryStorage::new(); // or the storage of apalis-postgres, apalis-redis, ..
    for day in ["2026-11-26", "2026-11-27", "2026-11-27"] {
        queue.push(Interest { day }).await?;
    }
    let worker = WorkerBuilder::new("interest")
        .backend(queue)
        .data(bank)
        .build(credit);
    worker.run().await?;
    Ok(())
}
