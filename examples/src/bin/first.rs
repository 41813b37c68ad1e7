//! A holder is paused past its lease, and its late write is refused:
//! `first postgres://localhost/app`
use std::{error::Error, time::Duration};

use palisade::{Ttl, store::PgFencedStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: first DATABASE_URL")?;
    let store = PgFencedStore::new(sqlx::PgPool::connect(&url).await?);
    store.migrate().await?; // a schema of its own, `fenced`, beside your tables
    let accounts = palisade::one_database(store).await?; // the locks are in there, too

    let short = accounts
        .acquire("account:42")
        .ttl(Ttl::secs(1))
        .renew(false);
    let slow = short.await?;
    tokio::time::sleep(Duration::from_secs(2)).await; // GC, SIGSTOP, a slow disk: the lease ends

    let next = accounts
        .acquire("account:42")
        .wait(Duration::from_secs(5))
        .await?;
    let mut tx = next.begin().await?; // statements of yours go through `tx`
    sqlx::query("SELECT 'your write'").execute(&mut *tx).await?;
    let receipt = tx.commit_and_release(next).await?; // check and write are one transaction
    println!("the next holder has written, token {}", receipt.token());

    // The slow holder does not look at its lease. No matter: the database does.
    match accounts.store().begin(slow.sequencer()).await {
        Ok(_) => return Err("a stale write was let in".into()),
        Err(refused) => println!("the slow one is refused: {refused}"),
    }
    Ok(())
}
