use std::time::Duration;

use super::{calls, client::Client};
use lock_core::{
    Error, ErrorKind, Released, Sequencer,
    backend::{AttemptId, AttemptRef, Lease, RenewRequest, Renewed},
};

/// So many leases are renewed by one statement.
const BATCH: usize = 1000;

/// So often a lease is asked for again about which another transaction is deciding, and after this
/// pause.
const BUSY_TRIES: usize = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

impl Client {
    pub(super) async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let mut answers = Vec::with_capacity(leases.len());
        for batch in leases.chunks(BATCH) {
            answers.extend(self.renew_batch(batch).await);
        }
        answers
    }

    async fn renew_batch(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let busy = || Err(Error::not_applied(ErrorKind::Unavailable).because("it is locked"));
        let mut answers: Vec<_> = leases.iter().map(|_| busy()).collect();
        let mut rest: Vec<_> = (0..leases.len()).collect();
        for _ in 0..BUSY_TRIES {
            match self.renew_once(leases, &rest).await {
                Ok(renewed) => {
                    for (place, answer) in renewed {
                        answers[place] = Ok(answer);
                    }
                }
                Err(error) => {
                    for place in rest {
                        answers[place] = Err(error.clone());
                    }
                    return answers;
                }
            }
            rest.retain(|place| answers[*place].is_err());
            if rest.is_empty() {
                break;
            }
            self.runtime
                .sleep_until(self.runtime.now() + BUSY_PAUSE)
                .await;
        }
        answers
    }

    /// Those that were decided, by their places.
    async fn renew_once(
        &self,
        leases: &[RenewRequest],
        places: &[usize],
    ) -> Result<Vec<(usize, Renewed)>, Error> {
        let asked = self.runtime.now();
        let some: Vec<_> = places.iter().map(|place| &leases[*place]).collect();
        let mut decided = Vec::with_capacity(some.len());
        let row = self.one(calls::renew(&self.names, &some)).await?;
        for (place, letter) in places.iter().zip(row.text("outcomes")?.chars()) {
            let ttl = leases[*place].ttl.get();
            match letter {
                'r' => {
                    let lease = Lease::counted_from(asked, ttl);
                    decided.push((*place, Renewed::Renewed(lease)));
                }
                'n' => decided.push((*place, Renewed::NotHolder)),
                _busy => {}
            }
        }
        Ok(decided)
    }

    pub(super) async fn release(
        &self,
        lease: &Sequencer,
        tombstone: bool,
    ) -> Result<Released, Error> {
        self.released(calls::release(&self.names, lease, tombstone))
            .await
    }

    pub(super) async fn release_hold(
        &self,
        lease: &Sequencer,
        attempt: AttemptId,
    ) -> Result<Released, Error> {
        self.released(calls::release_hold(&self.names, lease, attempt))
            .await
    }

    async fn released(&self, call: String) -> Result<Released, Error> {
        let row = self.one(call).await?;
        Ok(match &*row.text("outcome")? {
            "released" => Released::Released,
            _ => Released::NotHolder,
        })
    }

    pub(super) async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.one(calls::cancel(&self.names, attempt))
            .await
            .map(drop)
    }
}
