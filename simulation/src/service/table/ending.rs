//! The ways in which a lease or an attempt ends.

use lock_core::{
    Error, FencingToken, Released, Sequencer,
    backend::{AttemptId, AttemptRef, Forced},
};

use super::Visit;
use crate::service::observe::{Change, HowEnded};

impl Visit<'_, '_> {
    pub(in crate::service) fn release(&mut self, lease: &Sequencer, tombstone: bool) -> Released {
        self.settle(None);
        let held = self.resource.held.as_ref();
        if !held.is_some_and(|held| held.is(lease)) {
            return self.resource.tombstones.answer(lease, None);
        }
        if tombstone {
            self.bury(lease.holder(), None, Some(lease.token()));
        }
        self.end(HowEnded::Released);
        Released::Released
    }

    pub(in crate::service) fn release_hold(
        &mut self,
        lease: &Sequencer,
        attempt: AttemptId,
    ) -> Released {
        self.settle(None);
        let held = self.resource.held.as_mut();
        let held = held.filter(|held| held.is(lease));
        let left = held.and_then(|held| held.forget(attempt).then_some(held.holds.len()));
        let Some(left) = left else {
            return self.resource.tombstones.answer(lease, Some(attempt));
        };
        let (holder, token) = (lease.holder(), lease.token());
        self.bury(holder, Some(attempt), Some(token));
        match left {
            0 => self.end(HowEnded::LastHold),
            _ => self.changed(holder, Change::HoldEnded { token, attempt }),
        }
        Released::Released
    }

    pub(in crate::service) fn cancel(&mut self, attempt: &AttemptRef) {
        let AttemptRef { holder, id, .. } = *attempt;
        self.settle(None);
        self.bury(holder, Some(id), None);
        self.leave(id);
        let held = self.resource.held.as_mut();
        let Some(held) = held.filter(|held| held.holder == holder) else {
            return;
        };
        if !held.forget(id) {
            return;
        }
        let token = held.token;
        match held.holds.is_empty() {
            true => self.end(HowEnded::Cancelled),
            false => self.changed(holder, Change::HoldEnded { token, attempt: id }),
        }
    }

    pub(in crate::service) fn force_release(
        &mut self,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        self.settle(None);
        let held = self.resource.held.as_ref();
        let Some(held) = held.filter(|held| held.token == token) else {
            return Ok(Forced::NotHeld);
        };
        let holder = held.holder;
        // Drawn before the resource is handed on, so that it lies below the next token.
        let revocation = self.tokens.draw(0, None)?;
        self.bury(holder, None, None);
        self.end(HowEnded::Forced { revocation });
        Ok(Forced::Ended { revocation })
    }
}
