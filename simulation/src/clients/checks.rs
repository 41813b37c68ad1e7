//! The promises that a client can judge by itself, by its own calls.

use std::time::Duration;

use fenced_store::{FenceError, FencedGuard, FencedTx, NotCommitted};
use futures_util::FutureExt;
use lock_core::{LeaseGuard, backend::Moment};

use super::{Me, me::Releases};
use crate::{judge::act::Act, plan::Work, store::Ledger};

/// How much later than its wait an acquisition may end.
const LATE: Duration = Duration::from_millis(600);

impl<S: Ledger> Me<S> {
    /// A wait ends in time, if nothing has stopped the process.
    pub(crate) fn has_waited(&self, since: Moment, plan: Work, error: Option<&lock_core::Error>) {
        let waited = self.runtime().now().since(since);
        let longest = plan.wait.map(|wait| wait + LATE);
        if self.around.plan.stops_nobody() && longest.is_some_and(|longest| waited > longest) {
            let what = format!("a wait of {:?} took {waited:?}: {error:?}", plan.wait);
            self.broke("bounded-wait", what);
        }
    }

    /// A lease that was just returned is long enough to be of use, if nothing has stopped the
    /// process, and no answer was late.
    pub(crate) fn is_whole(&self, guard: &LeaseGuard) {
        let left = guard.remaining().unwrap_or_default();
        let plan = &self.around.plan;
        let is_prompt = plan.to_service.late == 0 && plan.faults.is_empty();
        if plan.stops_nobody() && is_prompt && left < self.ttl().get() / 2 {
            let what = format!("{left:?} are left of {} when it is returned", guard.token());
            self.broke("whole-lease", what);
        }
    }

    /// A guard whose lease is lost says so by all its methods.
    pub(crate) fn knows_its_loss(&self, guard: &LeaseGuard) {
        let is_lost = guard.lost().now_or_never().is_some();
        if guard.is_held() == is_lost {
            let what = format!(
                "{} is held: {}, lost: {is_lost}",
                guard.token(),
                guard.is_held()
            );
            self.broke("guard-loss", what);
        }
    }

    /// A lease that was lost while no call used its guard is not counted as held any more.
    pub(super) async fn is_counted(&self, guard: &LeaseGuard) {
        // All that happens at this moment comes first.
        self.think(Duration::from_nanos(317)).await;
        let counted = || self.locks().stats().held;
        let before = counted();
        let is_held = guard.is_held();
        if self.around.plan.is_undisturbed() && !is_held && counted() < before {
            let what = format!("the loss of {} was not noticed", guard.token());
            self.broke("guard-loss", what);
        }
    }

    /// Drops a guard. Its release is under way before anything that its task asks for next.
    pub(super) fn drop_guard(&self, guard: impl Releases) {
        let token = guard.token();
        let sent = || self.around.log.judge().sent_by(self.number());
        let before = sent();
        drop(guard);
        if sent() == before {
            self.broke("guard-drop", format!("the drop of {token} sends nothing"));
        }
    }

    /// Begins a transaction; a refusal is reported. A guard whose lease is lost, or that was
    /// refused, says so without a server.
    pub(super) async fn begin(&self, guard: &FencedGuard<S>) -> Result<FencedTx<S>, FenceError> {
        if !guard.is_held() {
            return self.begin_without(guard, "G5").await;
        }
        let begun = guard.begin().await;
        if begun.as_ref().is_err_and(FenceError::is_fenced) {
            self.act(Act::Refused {
                resource: guard.resource().as_str().to_owned(),
                token: guard.token().get(),
            });
            return self.begin_without(guard, "several-refused").await;
        }
        begun
    }

    /// Begins a transaction that the guard has to refuse by itself, and at once.
    async fn begin_without(
        &self,
        guard: &FencedGuard<S>,
        promise: &'static str,
    ) -> Result<FencedTx<S>, FenceError> {
        let begun = guard.begin().into_future().now_or_never();
        if let Some(begun @ Err(_)) = begun {
            return begun;
        }
        let what = format!("the guard of {} asks the store again", guard.token());
        self.broke(promise, what);
        guard.begin().await
    }

    /// Takes the guard out of an error after a while. It was not renewed meanwhile.
    pub(super) async fn taken_out(
        &self,
        not_committed: NotCommitted<S>,
        plan: Work,
    ) -> (FenceError, FencedGuard<S>) {
        let ttl = self.ttl().get();
        let is_kept = plan.choice & 8 == 8 && !self.around.plan.is_long;
        if is_kept {
            self.saw("guard kept in an error");
            self.think(ttl).await;
        }
        let (error, guard) = not_committed.into_parts();
        if is_kept && guard.is_held() {
            let what = format!("{} is held for {ttl:?} after its error", guard.token());
            self.broke("guard-paused", what);
        }
        (error, guard)
    }
}
