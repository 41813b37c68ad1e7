use std::{collections::BTreeMap, sync::Arc};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream, FuturesUnordered, SelectAll},
};
use tokio::sync::watch;
use tracing::{debug, warn};

use super::{
    desk::{Desk, Move, Phase},
    pace,
    schedule::Key,
};
use crate::{
    BoxFuture, Error, LockService, Moment, RenewRequest, Renewed, Runtime,
    manager::{
        lost::LostReason,
        meter::Meter,
        status::{Due, LeaseStatus},
    },
};

/// Leases per renewal request. A larger script would delay all other clients of the lock server.
const BATCH: usize = 100;

/// Concurrent requests to one part of the service: while it answers one request, the next is on its
/// way. With two requests, both would be answered at the same time, and the service would be idle
/// until both come again. If all were sent at once, the service could serve no other client until
/// they are done.
const BATCHES_AT_ONCE: usize = 3;

/// The task itself.
pub(super) struct Task {
    backend: LockService,
    runtime: Arc<dyn Runtime>,
    meter: Arc<Meter>,
    desk: Arc<Desk>,
    frozen: watch::Receiver<bool>,
    /// The answers of the parts of the service, batch by batch. A slow part does not delay the
    /// others.
    renewals: SelectAll<BoxStream<'static, Vec<Answer>>>,
    clean_ups: FuturesUnordered<BoxFuture<'static, ()>>,
}

type Scheduled = (Key, Arc<LeaseStatus>);
type Answer = (Scheduled, Result<Renewed, Error>);

impl Task {
    pub(super) fn new(
        backend: LockService,
        runtime: Arc<dyn Runtime>,
        meter: Arc<Meter>,
        desk: Arc<Desk>,
        frozen: watch::Receiver<bool>,
    ) -> Self {
        Self {
            backend,
            runtime,
            meter,
            desk,
            frozen,
            renewals: SelectAll::new(),
            clean_ups: FuturesUnordered::new(),
        }
    }

    pub(super) async fn run(mut self) {
        let (desk, runtime) = (Arc::clone(&self.desk), Arc::clone(&self.runtime));
        loop {
            // An error means that the handle is gone. Without the handle the watchdog cannot be
            // frozen.
            drop(self.frozen.wait_for(|frozen| !frozen).await);
            self.clean_ups.extend(desk.take_clean_ups());
            self.renew_due();
            let until = match desk.fall_asleep() {
                Some(until) => until,
                None if self.clean_ups.is_empty() => return,
                None => Moment::NEVER,
            };
            tokio::select! {
                biased;
                Ok(()) = self.frozen.changed() => {}
                Some(answers) = self.renewals.next() => self.settle(answers),
                Some(()) = self.clean_ups.next() => {}
                () = runtime.sleep_until(until) => {}
                () = desk.news() => {}
            }
        }
    }

    /// Sends the renewals that are due, grouped by part of the service, so that a part that does
    /// not answer does not delay the others.
    ///
    /// Until the answer comes, the lease stays in the schedule. So it is renewed again if no answer
    /// comes, and its end is noticed even if no call uses its guard.
    fn renew_due(&mut self) {
        let mut by_part = BTreeMap::<u16, Vec<Scheduled>>::new();
        loop {
            let now = self.runtime.now();
            let due = self.desk.due(now, BATCH);
            if due.is_empty() {
                break;
            }
            let mut moves = Vec::with_capacity(due.len());
            for (key, lease) in due {
                moves.push((
                    key,
                    match lease.due() {
                        Due::Renew { deadline } => {
                            let part = self.backend.part_of(lease.sequencer().resource());
                            by_part.entry(part).or_default().push((key, lease));
                            Move::To(pace::unanswered(now, deadline))
                        }
                        Due::LetEnd { deadline } => Move::To(deadline),
                        Due::Forget => Move::Off,
                    },
                ));
            }
            self.desk.arrange(moves);
        }
        for (part, leases) in by_part {
            debug!(part, leases = leases.len(), "renewing");
            let batches: Vec<_> = leases.chunks(BATCH).map(<[_]>::to_vec).collect();
            let backend = self.backend.clone();
            let answers = stream::iter(batches)
                .map(move |batch| renew(backend.clone(), batch))
                .buffer_unordered(BATCHES_AT_ONCE);
            self.renewals.push(answers.boxed());
        }
    }

    fn settle(&self, answers: Vec<Answer>) {
        let now = self.runtime.now();
        // One random value for all leases, so that they stay together.
        let dice = self.runtime.dice();
        let mut moves = Vec::with_capacity(answers.len());
        debug!(leases = answers.len(), "renewals answered");
        for ((key, lease), answer) in answers {
            moves.push((
                key,
                match answer {
                    Ok(Renewed::Renewed(renewed)) => {
                        self.meter.renewals.add(1);
                        lease.renewed(renewed);
                        Move::To(pace::together(now, renewed.renew_by()))
                    }
                    Ok(Renewed::NotHolder) => {
                        // For a lease that was released in the meantime, this does nothing.
                        lease.lose(LostReason::NotHolder);
                        Move::Off
                    }
                    Err(error) => {
                        self.meter.renewal_failures.add(1);
                        debug!(%error, "renewal failed, trying again within the lease");
                        Move::Sooner(pace::failed(now, lease.ttl(), dice))
                    }
                },
            ));
        }
        self.desk.arrange(moves);
    }
}

impl Drop for Task {
    /// Runs after the task's work, or when the runtime is dropped in the middle of it.
    fn drop(&mut self) {
        if self.desk.close() {
            warn!(
                backend = self.backend.kind(),
                panicked = std::thread::panicking(),
                "the watchdog has ended without a shutdown: its runtime has ended, or the lock \
                 service's implementation panicked; from now on every acquire of its manager fails"
            );
        }
        let unfinished = self.clean_ups.len() + self.desk.take_clean_ups().len();
        self.meter.abandoned.add(unfinished as u64);
        self.desk.enter(Phase::Ended);
    }
}

/// Sends one batch: the leases that still need renewing when its turn comes.
async fn renew(backend: LockService, mut leases: Vec<Scheduled>) -> Vec<Answer> {
    leases.retain(|(_, lease)| matches!(lease.due(), Due::Renew { .. }));
    if leases.is_empty() {
        return Vec::new();
    }
    let requests: Vec<_> = leases
        .iter()
        .map(|(_, lease)| RenewRequest::new(lease.sequencer().clone(), lease.ttl()))
        .collect();
    let answers = backend.renew(&requests).await;
    leases.into_iter().zip(answers).collect()
}
