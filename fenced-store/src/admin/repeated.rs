use tokio::time::sleep;
use tracing::debug;

use super::AdminError;
use crate::{FenceError, begin::RETRIES};

/// Carries out an order again if the database has rolled it back in favour of another transaction,
/// as it does with one of those that are in a deadlock. A handover that stopped there would leave
/// resources that nobody can claim.
pub(super) async fn repeated<T, F>(mut order: impl FnMut() -> F) -> Result<T, AdminError>
where
    F: Future<Output = Result<T, AdminError>>,
{
    let mut pauses = RETRIES.pauses();
    loop {
        let result = order().await;
        let Err(AdminError::Store(error @ FenceError::Serialization { .. })) = &result else {
            return result;
        };
        let Some(pause) = pauses.next() else {
            return result;
        };
        debug!(%error, ?pause, "carrying out the order again");
        sleep(pause).await;
    }
}
