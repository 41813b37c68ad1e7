use lock_core::{FencingToken, Issuer, ResourceName};
use tokio::sync::Mutex;

use super::{HandoverError, HandoverPhase, HandoverStep};
use crate::{
    Dialect, FenceError,
    admin::{Admin, AdminError, BATCH, Seal, dialect, repeated::repeated},
    uninterrupted::uninterrupted,
};

/// Changes of the issuer by this process take turns: one that goes on in the background, because
/// its caller is gone, must not come behind one that turns back.
static CHANGING: Mutex<()> = Mutex::const_new(());

impl<DB: Dialect> Admin<'_, DB> {
    /// Changes the single issuer row, after the claims that are under way.
    pub(super) async fn change_issuer(&self, order: &Seal) -> Result<(), HandoverError> {
        let (store, seal) = (self.store.clone(), order.clone());
        let lock_timeout = DB::lock_timeout(store.tx_options());
        let changed = uninterrupted(async move {
            let _turn = CHANGING.lock().await;
            repeated(async || Ok(dialect::change_issuer(store.pool(), lock_timeout, &seal).await?))
                .await
        });
        match changed.await {
            Ok(other) => refused(other, HandoverPhase::Before),
            Err(source) => {
                let phase = match source {
                    AdminError::Store(FenceError::CommitUnknown { .. }) => HandoverPhase::Sealing,
                    _ => HandoverPhase::Before,
                };
                Err(HandoverError::Store { phase, source })
            }
        }
    }

    /// Seals the marks of the old service; returns how many this call has sealed.
    pub(super) async fn seal_marks(
        &self,
        order: &Seal,
        floor: FencingToken,
        progress: &mut (impl FnMut(HandoverStep<'_>) + Send),
    ) -> Result<u64, HandoverError> {
        let phase = HandoverPhase::Sealing;
        let failed = |source| HandoverError::Store { phase, source };
        let failed_to_look = |error| failed(AdminError::Store(error));
        let (mut sealed, mut held_up) = (0, None::<FenceError>);
        let mut after = String::new();
        loop {
            let marks = dialect::marks_of(self.store.pool(), &order.from, &after, BATCH).await;
            let marks = marks.map_err(failed_to_look)?;
            let Some(last) = marks.last() else {
                break;
            };
            after = last.to_string();
            for resource in marks {
                match self.seal_mark(order, floor, &resource).await {
                    Ok(other) => {
                        refused(other, phase)?;
                        sealed += 1;
                        progress(HandoverStep::Sealed(&resource, sealed));
                    }
                    Err(AdminError::Store(error)) if is_held_up(&error) => held_up = Some(error),
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        if let Some(source) = held_up {
            return Err(HandoverError::Unfinished { sealed, source });
        }
        let left = dialect::marks_left(self.store.pool(), &order.to).await;
        match left.map_err(failed_to_look)? {
            None => Ok(sealed),
            Some((issuer, marks)) => Err(HandoverError::OthersLeft {
                sealed,
                issuer,
                marks,
            }),
        }
    }

    /// Returns the issuer whose tokens the store accepts if another handover has overtaken this.
    async fn seal_mark(
        &self,
        order: &Seal,
        floor: FencingToken,
        resource: &ResourceName,
    ) -> Result<Option<Issuer>, AdminError> {
        let (store, seal, resource) = (self.store.clone(), order.clone(), resource.clone());
        let lock_timeout = DB::lock_timeout(store.tx_options());
        uninterrupted(async move {
            repeated(async || {
                let pool = store.pool();
                Ok(dialect::seal_mark(pool, lock_timeout, &seal, floor, &resource).await?)
            })
            .await
        })
        .await
    }
}

fn refused(other: Option<Issuer>, phase: HandoverPhase) -> Result<(), HandoverError> {
    match other {
        None => Ok(()),
        Some(current) => Err(HandoverError::OtherIssuer { phase, current }),
    }
}

/// Whether only this mark cannot be sealed now.
const fn is_held_up(error: &FenceError) -> bool {
    error.is_retryable() || matches!(error, FenceError::Terminated { .. })
}
