//! Prints the leader, and each new one: `follower postgres://localhost/shop`
use futures_util::StreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args()
        .nth(1)
        .ok_or("usage: follower DATABASE_URL")?;
    let shop = palisade::open(url).await?;
    let every = std::time::Duration::from_millis(500);
    let mut leaders = std::pin::pin!(shop.locks().observe("scheduler", every));
    while let Some(seen) = leaders.next().await {
        // Leaders have their address in the metadata. This leader may have lost its lease by now.
        match seen.map(|leader| leader.and_then(|leader| leader.metadata)) {
            Ok(Some(address)) => println!("{address} leads"),
            Ok(None) => println!("no leader"),
            Err(error) => println!("unknown, and asked again: {error}"),
        }
    }
    Ok(())
}
