//! A holder is paused past its lease, and its late write is refused:
//! `first postgres://localhost/app`
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: first DATABASE_URL")?;
    let bank = palisade::open(url).await?; // lock service and store, in schemas of their own

    let slow = bank.acquire("account:42").ttl(palisade::Ttl::secs(1));
    let slow = slow.renew(false).await?;
    tokio::time::sleep(Duration::from_secs(2)).await; // GC, SIGSTOP, a slow disk: the lease ends

    let next = bank.acquire("account:42").await?;
    let mut tx = next.begin().await?; // statements of yours go through `tx`
    sqlx::query("SELECT 'your write'").execute(&mut *tx).await?;
    let receipt = tx.commit_and_release(next).await?; // check and write are one transaction
    println!("the next holder has written, token {}", receipt.token());

    // The slow holder does not check its lease. The database checks the token.
    let late = bank.store().begin(slow.sequencer()).await;
    let refused = late.err().ok_or("a stale write was let in")?;
    println!("the slow one is refused: {refused}");
    Ok(())
}
