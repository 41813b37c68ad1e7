//! The time in which a lock gets from one holder to the next.

use std::time::{Duration, Instant};

use e2e::servers::until;
use lock_core::{LockManager, Ttl};
use sqlx::{Connection, Executor, PgConnection};

use super::world::World;
use crate::{
    consensus::hand_on,
    figure::{BoxError, Measured, Unit},
    paired::{Samples, take_turns},
};

/// A ttl that is far longer than a turn.
const TTL: Ttl = Ttl::secs(60);

const TAKE: &str = "BEGIN; SELECT FROM lease WHERE resource = '1' FOR UPDATE";

/// Our waiter gets a notice and asks. A session that waits for a row is woken by the server.
pub(super) async fn vs_for_update(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new(8).await?;
    let mut sessions = [
        PgConnection::connect(world.server.url()).await?,
        PgConnection::connect(world.server.url()).await?,
    ];
    let medians = take_turns(
        std::cmp::max(rounds / 4, 1),
        async |samples| hand_on(world.accounts.locks(), TTL, samples).await,
        async |samples| rows(&mut sessions, samples).await,
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// The row lock goes from one session to the other and back.
async fn rows(sessions: &mut [PgConnection; 2], samples: &mut Samples) -> Result<(), BoxError> {
    const HANDOFFS: usize = 8;
    let [holder, waiter] = sessions;
    holder.execute(sqlx::raw_sql(TAKE)).await?;
    let (mut holder, mut waiter) = (holder, waiter);
    for _ in 0..HANDOFFS {
        let taken = async {
            waiter.execute(sqlx::raw_sql(TAKE)).await?;
            Ok::<_, sqlx::Error>(Instant::now())
        };
        let given = async {
            // The other session waits by then.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let released = Instant::now();
            holder.execute(sqlx::raw_sql("COMMIT")).await?;
            Ok::<_, sqlx::Error>(released)
        };
        let (taken, released) = tokio::try_join!(taken, given)?;
        samples.push(taken.saturating_duration_since(released).as_secs_f64() * 1e6);
        (holder, waiter) = (waiter, holder);
    }
    holder.execute(sqlx::raw_sql("COMMIT")).await?;
    Ok(())
}

/// The lock goes from one client to the other and back, as between two processes whose waiters
/// look.
pub(super) async fn across(
    clients: &[LockManager; 2],
    ttl: Ttl,
    samples: &mut Samples,
) -> Result<(), BoxError> {
    const HANDOFFS: usize = 8;
    let [mut holder, mut waiter] = clients.each_ref();
    let mut held = holder.acquire("across").ttl(ttl).await?;
    for _ in 0..HANDOFFS {
        let taken = async {
            let next = waiter.acquire("across").ttl(ttl).await?;
            Ok::<_, BoxError>((next, Instant::now()))
        };
        let given = async {
            until("the other waits", async || {
                let now = holder.inspect(held.resource()).await;
                now.is_ok_and(|now| now.waiters == Some(1))
            })
            .await;
            // The pauses between its looks are the longest by then.
            tokio::time::sleep(Duration::from_millis(600)).await;
            let released = Instant::now();
            held.release().await?;
            Ok::<_, BoxError>(released)
        };
        let ((next, taken), released) = tokio::try_join!(taken, given)?;
        samples.push(taken.saturating_duration_since(released).as_secs_f64() * 1e6);
        held = next;
        (holder, waiter) = (waiter, holder);
    }
    held.release().await?;
    Ok(())
}
