//! Carries out orders, and reads the marks before that.

use lock_core::{FencingToken, Issuer, ResourceName};
use tokio::sync::Mutex;
use tracing::debug;

use super::{
    AdminError,
    order::{Administer, Order},
};
use crate::{
    Dialect, FenceError, FencedStore,
    rule::marks::{token, word},
    transaction::{
        begin::RETRIES,
        leaked::{begin_unfenced, to_read},
        uninterrupted::uninterrupted,
    },
};

/// The marks before a handover.
#[derive(Clone, Debug, Default)]
pub(super) struct HandoverStatus {
    /// The greatest mark of all.
    pub(super) greatest: Option<(ResourceName, FencingToken)>,
    /// The number of marks of the issuer.
    pub(super) marks: u64,
}

pub(super) async fn status<DB: Dialect>(
    store: &FencedStore<DB>,
    of: &Issuer,
) -> Result<HandoverStatus, FenceError> {
    let status = look(store, DB::Admin::status(of)).await?;
    let Some(row) = status.first() else {
        return Ok(HandoverStatus::default());
    };
    Ok(HandoverStatus {
        greatest: Some((word::<DB, _>(row, 0)?, token::<DB>(row, 1)?)),
        marks: DB::number(row, 2)?.unsigned_abs(),
    })
}

pub(super) async fn resources_of<DB: Dialect>(
    store: &FencedStore<DB>,
    issuer: &Issuer,
    after: &str,
    count: usize,
) -> Result<Vec<ResourceName>, FenceError> {
    let marks = look(store, DB::Admin::resources_of(issuer, after, count)).await?;
    marks.iter().map(|row| word::<DB, _>(row, 0)).collect()
}

pub(super) async fn marks_of_others<DB: Dialect>(
    store: &FencedStore<DB>,
    of: &Issuer,
) -> Result<Option<(Issuer, u64)>, FenceError> {
    let left = look(store, DB::Admin::marks_of_others(of)).await?;
    let left = left.first().map(|row| {
        let marks = DB::number(row, 1)?.unsigned_abs();
        Ok((word::<DB, _>(row, 0)?, marks))
    });
    left.transpose()
}

async fn look<DB: Dialect>(
    store: &FencedStore<DB>,
    sql: String,
) -> Result<Vec<DB::Row>, FenceError> {
    DB::look(&mut *to_read(store.pool()).await?, &sql, &[]).await
}

/// Changes of the issuer by this process take turns. A change whose caller is gone goes on in the
/// background, and it must not come after another change that turns back.
static CHANGING: Mutex<()> = Mutex::const_new(());

/// Carries out an order. Repeats it if the database has rolled it back in favour of another
/// transaction, as after a deadlock. A handover that stopped there would leave resources that no
/// client can claim.
pub(super) async fn carry_out<DB: Dialect>(
    store: &FencedStore<DB>,
    order: Order,
) -> Result<Option<Issuer>, AdminError> {
    let store = store.clone();
    uninterrupted(store.tasks(), async move {
        let _turn = match order {
            Order::ChangeIssuer(_) => Some(CHANGING.lock().await),
            _ => None,
        };
        let mut pauses = RETRIES.pauses();
        loop {
            let error = match attempt(&store, &order).await {
                Err(AdminError::Store(error @ FenceError::Serialization { .. })) => error,
                result => return result,
            };
            let Some(pause) = pauses.next(&*store.runtime) else {
                return Err(error.into());
            };
            debug!(%error, ?pause, "carrying out the order again");
            store.runtime.sleep(pause).await;
        }
    })
    .await
}

/// A transaction that is not committed is rolled back when it is dropped.
async fn attempt<DB: Dialect>(
    store: &FencedStore<DB>,
    order: &Order,
) -> Result<Option<Issuer>, AdminError> {
    let mut tx = begin_unfenced(store.pool()).await?;
    let lock_timeout = DB::lock_timeout(store.tx_options());
    let other = DB::Admin::carry_out(&mut tx, lock_timeout, order).await?;
    if other.is_none() {
        tx.commit().await.map_err(DB::of_commit)?;
    }
    Ok(other)
}
