use std::{sync::Arc, time::Duration};

use super::{
    failure::Failure,
    keys::Names,
    leases::without_slack,
    queued::Life,
    service::{Found, Service, TRIES},
    wire::RangeRequest,
};
use lock_core::{
    Error,
    backend::{Lease, RenewRequest, Renewed},
};

/// The number of leases that are renewed in one step. A transaction may have 128 parts.
const CHUNK: usize = 50;

impl Service {
    pub(super) async fn renew_all(
        self: &Arc<Self>,
        leases: &[RenewRequest],
    ) -> Vec<Result<Renewed, Error>> {
        let mut answers = Vec::with_capacity(leases.len());
        for chunk in leases.chunks(CHUNK) {
            match self.renew_chunk(chunk).await {
                Ok(renewed) => answers.extend(renewed.into_iter().map(Ok)),
                Err(failure) => {
                    let error = Error::from(failure);
                    answers.extend(chunk.iter().map(|_| Err(error.clone())));
                }
            }
        }
        answers
    }

    /// Renews some leases. The entries are read first, because a keep-alive compares nothing.
    ///
    /// A keep-alive counts only if it was answered in the same term as the read, and a lease is
    /// counted from the begin of the read: see [`keep_alive`](Self::keep_alive).
    async fn renew_chunk(
        self: &Arc<Self>,
        leases: &[RenewRequest],
    ) -> Result<Vec<Renewed>, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let asked = self.now();
            let (found, term) = self.living(leases).await?;
            let on = |found: &Option<(Names, Found)>| Some(found.as_ref()?.1.entry.as_ref()?.lease);
            let numbers: Vec<_> = found.iter().filter_map(on).collect();
            if numbers.is_empty() {
                return Ok(vec![Renewed::NotHolder; leases.len()]);
            }
            // The read went to the leader and back, so it took as long as a keep-alive.
            let took = self.now().since(asked);
            let kept = self.keep_alive(&numbers, took).await?;
            let is_of_this_term = |life: &Life| life.said_in == Some(term);
            if !kept.iter().flatten().all(is_of_this_term) && tries < TRIES {
                continue;
            }
            let mut kept = kept.into_iter();
            let (mut renewed, mut living) = (Vec::with_capacity(leases.len()), Vec::new());
            let mut longest = Duration::ZERO;
            for found in found {
                let life = found.as_ref().and_then(|_| kept.next().flatten());
                let (Some(found), Some(life)) = (found, life.filter(is_of_this_term)) else {
                    renewed.push(Renewed::NotHolder);
                    continue;
                };
                let lease = Lease::counted_from(asked, without_slack(life.length));
                renewed.push(Renewed::Renewed(lease));
                longest = std::cmp::max(longest, life.length);
                living.push(found);
            }
            self.take_over(living, longest);
            return Ok(renewed);
        }
    }

    /// Each lease that is still held by the right holder, and `None` for each other lease. Also the
    /// term of the answer.
    async fn living(
        &self,
        leases: &[RenewRequest],
    ) -> Result<(Vec<Option<(Names, Found)>>, u64), Failure> {
        let names = leases.iter().map(|lease| {
            let sequencer = &lease.sequencer;
            self.keys.names(sequencer.resource(), sequencer.holder())
        });
        let names: Vec<_> = names.collect();
        let ranges = names
            .iter()
            .flat_map(|names| [&names.entry, &names.tombstone].map(|key| RangeRequest::key(key)));
        let answer = self.read(ranges).await?;
        let term = answer.term();
        let mut ranges = answer.ranges();
        let living = leases.iter().zip(names).map(|(request, names)| {
            let found = Found::read(&mut ranges);
            let token = request.sequencer.token();
            let is_held = found
                .entry
                .as_ref()
                .is_some_and(|entry| entry.has_token(token));
            is_held.then_some((names, found))
        });
        Ok((living.collect(), term))
    }
}
