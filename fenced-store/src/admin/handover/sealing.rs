use lock_core::{FencingToken, Issuer};

use super::{HandoverError, HandoverPhase, HandoverStep};
use crate::{
    Dialect, FenceError,
    admin::{
        Admin, AdminError, BATCH,
        carry_out::{carry_out, marks_of_others, resources_of},
        order::{Order, Seal},
    },
};

impl<DB: Dialect> Admin<'_, DB> {
    /// Changes the single issuer row, after the claims that are under way.
    pub(super) async fn change_issuer(&self, seal: &Seal) -> Result<(), HandoverError> {
        let changed = carry_out(self.store, Order::ChangeIssuer(seal.clone()));
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

    /// Seals the marks that the store has forgotten, all at once.
    pub(super) async fn seal_floor(
        &self,
        seal: &Seal,
        floor: FencingToken,
    ) -> Result<(), HandoverError> {
        let phase = HandoverPhase::Sealing;
        match carry_out(self.store, Order::SealFloor(seal.clone(), floor)).await {
            Ok(other) => refused(other, phase),
            Err(source) => Err(HandoverError::Store { phase, source }),
        }
    }

    /// Seals the marks of the old service. Returns the number that this call has sealed.
    pub(super) async fn seal_marks(
        &self,
        seal: &Seal,
        floor: FencingToken,
        progress: &mut (impl FnMut(HandoverStep<'_>) + Send),
    ) -> Result<u64, HandoverError> {
        let phase = HandoverPhase::Sealing;
        let failed = |source| HandoverError::Store { phase, source };
        let failed_to_look = |error| failed(AdminError::Store(error));
        let (mut sealed, mut held_up) = (0, None::<FenceError>);
        let mut after = String::new();
        loop {
            let marks = resources_of(self.store, &seal.from, &after, BATCH).await;
            let marks = marks.map_err(failed_to_look)?;
            let Some(last) = marks.last() else {
                break;
            };
            after = last.to_string();
            for resource in marks {
                let order = Order::SealMark(seal.clone(), floor, resource.clone());
                match carry_out(self.store, order).await {
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
        let left = marks_of_others(self.store, &seal.to).await;
        match left.map_err(failed_to_look)? {
            None => Ok(sealed),
            Some((issuer, marks)) => Err(HandoverError::OthersLeft {
                sealed,
                issuer,
                marks,
            }),
        }
    }
}

fn refused(other: Option<Issuer>, phase: HandoverPhase) -> Result<(), HandoverError> {
    match other {
        None => Ok(()),
        Some(current) => Err(HandoverError::OtherIssuer { phase, current }),
    }
}

/// Whether the error only concerns this mark, so that the others can be sealed.
const fn is_held_up(error: &FenceError) -> bool {
    error.is_retryable() || matches!(error, FenceError::Terminated { .. })
}
