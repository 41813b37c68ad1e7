use lock_core::{Attempt, FencingToken, LockManager, ResourceName, Ttl};

use super::{Handover, HandoverError, plan::clock_token};

/// The resource that a handover acquires from the new service, and gives back, before it changes
/// the store.
pub const PROBE: &str = "palisade-handover-probe";

/// The ttl of the lease of [`PROBE`]. It is short, because some services only grant short leases,
/// and because a lease that cannot be given back keeps others waiting.
const PROBING: Ttl = Ttl::secs(2);

/// Checks that the new service grants, that its counter can be lifted, and that its tokens are
/// below the floor. So an unfit service is noticed while the old one is still in place.
pub(super) async fn probe(order: &Handover, floor: FencingToken) -> Result<(), HandoverError> {
    let failed = |source| HandoverError::New { source };
    match token_of(&order.new).await.map_err(failed)? {
        Some(token) if token >= floor => Err(HandoverError::CountsPast {
            issuer: order.to().clone(),
            token,
            greatest: FencingToken::new(floor.get() - 1).unwrap_or(FencingToken::MIN),
        }),
        _ => Ok(()),
    }
}

/// The token of a lease that is granted here, or of the present holder.
///
/// The request demands a token above the clock. A service that can never be lifted above the floor
/// refuses it. The request does not demand a token above the floor itself, because other resources
/// may share the counter, and their early grants would then pass the seal.
async fn token_of(locks: &LockManager) -> Result<Option<FencingToken>, lock_core::Error> {
    let resource = ResourceName::new(PROBE).map_err(lock_core::Error::from)?;
    let lease = locks.acquire(resource.clone()).ttl(PROBING).renew(false);
    let clock = clock_token(locks.runtime().unix_time());
    match lease.at_least(clock).try_acquire().await? {
        Attempt::Granted(guard) => {
            let token = guard.token();
            guard.release().await?;
            Ok(Some(token))
        }
        Attempt::Held { .. } => {
            let holder = locks.inspect(&resource).await?.holder;
            Ok(holder.map(|holder| holder.token))
        }
    }
}
