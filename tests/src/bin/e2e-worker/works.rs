use std::{error::Error, time::Duration};

use clap::Args;
use fenced_jobs::{Jobs, Missed, Schedule, Slot};
use fenced_store::{FencedLockError, FencedTx, PgFencedLocks, PgFencedStore};
use jiff::Timestamp;
use lock_core::{LeaseGuard, RetryPolicy, Ttl};
use serde_json::json;
use sqlx::{PgPool, Postgres};
use tokio::time::sleep;

use crate::{Talk, say};

/// Fenced work, and its control: the same work under a lease that nothing checks. Both run in one
/// process, and so under the same pauses.
#[derive(Args)]
pub(crate) struct Works {
    /// URL of the PostgreSQL database.
    #[arg(long)]
    store: String,
    /// URL of the lock service, if it is not that database.
    #[arg(long)]
    lock: Option<String>,
    /// Where the schedule of the job begins: there is a slot each minute.
    #[arg(long)]
    since: Timestamp,
    /// Length of the leases.
    #[arg(long)]
    ttl_ms: u32,
}

/// How many slots are run under one lease.
const AT_ONCE: usize = 10;

/// The duration of the work before each write.
const WORK: Duration = Duration::from_millis(4);

/// The pause before another look at a lease that another process holds.
const SOON: Duration = Duration::from_millis(20);

impl Works {
    async fn connect(&self) -> Result<PgFencedLocks, Box<dyn Error>> {
        let store = PgFencedStore::new(PgPool::connect(&self.store).await?);
        let Some(lock) = &self.lock else {
            return Ok(palisade::open(store).await?);
        };
        let locks = palisade::connect(lock).await?;
        Ok(PgFencedLocks::new(locks, store))
    }

    const fn ttl(&self) -> Ttl {
        Ttl::millis(self.ttl_ms)
    }
}

/// Runs a job for each minute since the start of its schedule, and its control. Reports when
/// nothing is left to do.
pub(crate) async fn run_jobs(works: &Works, mut talk: Talk) -> Result<(), Box<dyn Error>> {
    let jobs = works.connect().await?;
    let minutes = Schedule::new("* * * * *", "UTC")?;
    say(&json!({ "ready": true }))?;
    let control = async {
        while !lease_table(works, &minutes, jobs.store().pool()).await? {
            sleep(SOON).await;
        }
        Ok::<_, sqlx::Error>(())
    };
    let fenced = async {
        while !run_due(works, &minutes, &jobs).await {
            sleep(SOON).await;
        }
    };
    let (control, ()) = tokio::join!(control, fenced);
    control?;
    say(&json!({ "done": true }))?;
    while talk.told_to_go_on().await? {}
    Ok(())
}

/// Runs all slots that are due. True if no slot was due.
async fn run_due(works: &Works, minutes: &Schedule, jobs: &PgFencedLocks) -> bool {
    let effect = async |slot: &Slot, tx: &mut FencedTx<Postgres>| {
        sleep(WORK).await;
        let effect = sqlx::query("INSERT INTO effect (slot) VALUES ($1)");
        effect.bind(slot.as_str()).execute(&mut **tx).await?;
        Ok::<_, FencedLockError>(())
    };
    let scheduled = jobs
        .scheduled("minutely", minutes)
        .missed(Missed::RunAll { at_most: AT_ONCE })
        .since(works.since)
        .back_off(RetryPolicy::fixed(SOON))
        .ttl(works.ttl());
    match scheduled.run(effect).await {
        Ok(runs) => runs.done.is_empty() && !runs.is_held && runs.next_in > SOON,
        Err(error) => {
            eprintln!("again after {error:?}");
            false
        }
    }
}

/// The algorithm of lease tables: take the lease, look whether the slot is done, and do the work,
/// whose row is the marker. True if no slot was due.
async fn lease_table(
    works: &Works,
    minutes: &Schedule,
    pool: &PgPool,
) -> Result<bool, sqlx::Error> {
    let lock = sqlx::query(
        "UPDATE lease SET until = clock_timestamp() + $1 * interval '1 ms' \
         WHERE until <= clock_timestamp()",
    );
    let lock = lock.bind(f64::from(works.ttl_ms)).execute(pool).await?;
    if lock.rows_affected() == 0 {
        return Ok(false);
    }
    let mut is_over = false;
    for _ in 0..AT_ONCE {
        let last = sqlx::query_scalar("SELECT max(slot) FROM control");
        let last: Option<String> = last.fetch_one(pool).await?;
        let last = last.and_then(|last| last.parse().ok());
        let last = last.unwrap_or_else(|| Slot::from(works.since));
        let Some(due) = minutes.due_since(&last, Timestamp::now()).next() else {
            is_over = true;
            break;
        };
        sleep(WORK).await;
        let effect = sqlx::query("INSERT INTO control (slot) VALUES ($1)");
        effect.bind(due.as_str()).execute(pool).await?;
    }
    let unlock = "UPDATE lease SET until = clock_timestamp()";
    sqlx::query(unlock).execute(pool).await?;
    Ok(is_over)
}

/// Leads whenever it can, and writes under its term, and unfenced, until its input ends.
pub(crate) async fn lead(works: &Works, mut talk: Talk) -> Result<(), Box<dyn Error>> {
    let shop = works.connect().await?;
    say(&json!({ "ready": true }))?;
    let lead = shop.lead("scheduler").ttl(works.ttl());
    let leading = lead.run(async |term| {
        loop {
            control(term, shop.store().pool()).await?;
            let mut tx = term.begin().await?;
            let write = sqlx::query("INSERT INTO effect (token) VALUES ($1)");
            let write = write.bind(i64::from(term.token()));
            write.execute(&mut *tx).await?;
            tx.commit().await?;
        }
    });
    tokio::select! {
        biased;
        ended = leading => ended.map_err(|error: FencedLockError| error.into()),
        over = async { while talk.told_to_go_on().await? {} Ok(()) } => over,
    }
}

/// A leader that looks whether it leads, and then works in a task of its own: its section is
/// dropped after a pause, and the task goes on.
#[expect(
    clippy::disallowed_methods,
    reason = "a task without an owner is what goes wrong here"
)]
async fn control(term: &LeaseGuard, pool: &PgPool) -> Result<(), sqlx::Error> {
    if !term.is_held() {
        return Ok(());
    }
    let (token, pool) = (i64::from(term.token()), pool.clone());
    let work = tokio::spawn(async move {
        sleep(WORK).await;
        let write = sqlx::query("INSERT INTO control (token) VALUES ($1)");
        write.bind(token).execute(&pool).await.map(drop)
    });
    work.await.map_err(|_| sqlx::Error::WorkerCrashed)?
}
