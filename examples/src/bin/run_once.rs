//! A job that runs once for each slot, even if several processes start it several times:
//! `run_once postgres://localhost/shop 2026-11-27`
use palisade::{
    jobs::{JobOutcome, Jobs},
    store::FencedLockError,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(slot)) = (arguments.next(), arguments.next()) else {
        return Err("usage: run_once DATABASE_URL SLOT".into());
    };
    let shop = palisade::open(url).await?;

    let report = shop.once("report", slot.as_str()).run(async |tx| {
        // All writes through `tx` are committed with the marker of the slot, or not at all.
        sqlx::query("INSERT INTO report (day) VALUES ($1)")
            .bind(&slot)
            .execute(&mut **tx)
            .await?;
        Ok::<_, FencedLockError>(())
    });
    match report.await? {
        JobOutcome::Ran((), receipt) => println!("ran under token {}", receipt.token()),
        JobOutcome::Done { token, .. } => println!("was done under token {token}"),
        other => println!("not now: {other:?}"),
    }
    shop.locks().shutdown().await;
    Ok(())
}
