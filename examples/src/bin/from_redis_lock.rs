//! From a plain Redis lock to fencing in three steps, `observe`, `warn` and `enforce`:
//! `from_redis_lock REDIS_URL DATABASE_URL STEP`
use std::{error::Error, time::Duration};

use palisade::store::{FencedLocks, PgFencedStore};

const ADD: &str = "UPDATE accounts SET balance = balance + 10 WHERE id = 42";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [redis, database, step] = &arguments[..] else {
        return Err("usage: from_redis_lock REDIS_URL DATABASE_URL observe|warn|enforce".into());
    };
    let store = PgFencedStore::new(sqlx::PgPool::connect(database).await?);
    store.migrate().await?;
    let locks = palisade::connect(redis).await?;
    // Before: `SET lock:account:42 RANDOM NX PX 10000`, the write, a script that deletes the key.
    let wait = Duration::from_secs(5);
    if step == "enforce" {
        // A stale write is refused. When all programs have taken this last step, protect the table.
        let accounts = FencedLocks::new(locks, store);
        let guard = accounts.acquire("account:42").wait(wait).await?;
        let mut tx = guard.begin().await?;
        sqlx::query(ADD).execute(&mut *tx).await?;
        tx.commit_and_release(guard).await?;
        println!("stored, fenced");
        return Ok(());
    }
    // A stale write is stored, and counted in `palisade_observed_total`.
    let observer = store.observe().await?;
    let guard = locks.acquire("account:42").wait(wait).await?;
    let _counted = observer.claim(guard.sequencer()).await;
    let mut tx = store.pool().begin().await?;
    sqlx::query(ADD).execute(&mut *tx).await?;
    let seen = observer.look(guard.sequencer()).await;
    if step == "warn" && seen.is_refused() {
        println!("a stale write: {seen:?}"); // warn an operator, and store the write nevertheless
    }
    tx.commit().await?;
    guard.release().await?;
    println!("stored, observed");
    Ok(())
}
