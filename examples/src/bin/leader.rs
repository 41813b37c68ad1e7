//! One of many processes leads, and its writes are refused as soon as another one does:
//! `leader postgres://localhost/shop 10.0.0.7:8080`
use palisade::{jobs::Jobs, store::FencedLockError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: leader DATABASE_URL ADDRESS".into());
    };
    let shop = palisade::open(url).await?;

    let lead = shop.lead("scheduler");
    let lead = lead.metadata(address.as_str());
    // After a lost connection the leader pauses, and stays the leader.
    let leading = lead.run_through(FencedLockError::may_pass, async |term| {
        println!("leading, term {}", term.token());
        loop {
            let mut tx = term.begin().await?;
            sqlx::query("UPDATE orders SET sent = now() WHERE sent IS NULL")
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    });
    tokio::select! {
        ended = leading => ended.map_err(|error: FencedLockError| error.into()),
        _ = tokio::signal::ctrl_c() => {
            // The drop of the future releases the lease; this waits until the lease is released.
            shop.locks().shutdown().await;
            Ok(())
        }
    }
}
