use std::collections::{HashMap, VecDeque};

use tokio::sync::watch;

use super::Pushed;
use lock_core::{
    FencingToken,
    backend::{AttemptId, Moment},
};

/// The attempts of this process that pushes may be for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    attempts: HashMap<AttemptId, Attempt>,
    /// When memories may be forgotten. A provisional lease is short, and so is this.
    memories: VecDeque<(Moment, AttemptId)>,
}

#[derive(Debug)]
enum Attempt {
    Waits(watch::Sender<Option<Pushed>>),
    /// Waits no longer: an answer had this grant, which is not confirmed yet. Its push may still be
    /// under way.
    WasTold(FencingToken, Moment),
}

impl Waiting {
    pub(super) fn enter(&mut self, attempt: AttemptId) -> watch::Receiver<Option<Pushed>> {
        let (sender, pushed) = watch::channel(None);
        self.attempts.insert(attempt, Attempt::Waits(sender));
        pushed
    }

    /// It waits no longer. A grant from an answer is remembered until its lease must have run out:
    /// if the lease is still there then, it has been confirmed.
    pub(super) fn leave(
        &mut self,
        attempt: AttemptId,
        told: Option<(FencingToken, Moment)>,
        now: Moment,
    ) {
        self.attempts.remove(&attempt);
        self.forget_old(now);
        if let Some((token, until)) = told {
            let told = Attempt::WasTold(token, until);
            self.attempts.insert(attempt, told);
            self.memories.push_back((until, attempt));
        }
    }

    /// Sets the push of a waiter. False if no attempt waits for it, and no answer had the grant.
    pub(super) fn take(&self, attempt: AttemptId, pushed: Option<Pushed>) -> bool {
        match (self.attempts.get(&attempt), pushed) {
            (Some(Attempt::Waits(sender)), pushed) => {
                sender.send_replace(pushed);
                true
            }
            (Some(Attempt::WasTold(token, _)), Some(pushed)) => pushed.token <= *token,
            _ => false,
        }
    }

    fn forget_old(&mut self, now: Moment) {
        while let Some((_, oldest)) = self.memories.pop_front_if(|(until, _)| *until <= now) {
            // It may wait again, or remember another grant.
            let is_old = |it: &Attempt| matches!(it, Attempt::WasTold(_, until) if *until <= now);
            if self.attempts.get(&oldest).is_some_and(is_old) {
                self.attempts.remove(&oldest);
            }
        }
    }
}
