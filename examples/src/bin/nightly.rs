//! A job that runs once every night, in the first process that is ready:
//! `nightly postgres://localhost/shop`
use std::time::Duration;

use palisade::{
    jobs::{Jobs, Missed, Schedule},
    store::FencedLockError,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args()
        .nth(1)
        .ok_or("usage: nightly DATABASE_URL")?;
    let shop = palisade::open(url).await?;
    let nightly = Schedule::new("0 2 * * *", "Europe/Vienna")?;
    loop {
        let runs = shop
            .scheduled("nightly-report", &nightly)
            .missed(Missed::RunNewest)
            .run(async |slot, tx| {
                sqlx::query("INSERT INTO report (day) VALUES ($1)")
                    .bind(slot.as_str())
                    .execute(&mut **tx)
                    .await?;
                Ok::<_, FencedLockError>(())
            })
            .await;
        // The failure of a night is noted. The night is due again after a pause, which grows.
        let pause = match runs {
            Ok(runs) => {
                println!("done: {:?}; next in {:?}", runs.done, runs.next_in);
                runs.next_in
            }
            Err(error) => {
                eprintln!("{error}");
                Duration::from_secs(1)
            }
        };
        tokio::time::sleep(pause).await;
    }
}
