//! A thousand leases that are renewed at once.

use std::sync::Arc;

use lock_core::{
    Attempt, Ttl,
    backend::{ConnectOptions, LockBackend, RenewRequest, Renewed, TokioRuntime},
};
use palisade::postgres::PostgresBackend;

use super::world::{ACCOUNTS, World};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::compare,
};

/// A ttl that lasts for the whole figure.
const TTL: Ttl = Ttl::secs(600);

pub(super) async fn vs_update(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new(1).await?;
    let mut requests = Vec::new();
    for number in 0..ACCOUNTS {
        let name = format!("account:{number}");
        let lease = world.accounts.locks().acquire(name).ttl(TTL);
        let Attempt::Granted(lease) = lease.detached().await? else {
            return Err("a lease of a fresh server is held".into());
        };
        requests.push(RenewRequest::new(lease.sequencer, TTL));
    }
    let (options, runtime) = (ConnectOptions::default(), Arc::new(TokioRuntime));
    let backend = PostgresBackend::on(world.pool.clone(), options, runtime).await?;
    let ids: Vec<_> = (0..i32::try_from(ACCOUNTS)?).collect();
    let renew_all = async || {
        let answers = backend.renew(&requests).await;
        for answer in answers {
            if answer? == Renewed::NotHolder {
                return Err("a lease was lost".into());
            }
        }
        Ok::<_, BoxError>(())
    };
    let update_all = async || {
        let update = "UPDATE accounts SET balance = balance + 1 WHERE id = ANY ($1)";
        let update = sqlx::query(update).bind(&ids);
        update.execute(&world.pool).await.map(drop)
    };
    let medians = compare(rounds, 1, renew_all, update_all).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}
