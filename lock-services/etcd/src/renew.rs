use super::{
    failure::Failure,
    keys::Names,
    record::{Kept, Place},
    service::{Found, Service, TRIES},
    wire::RangeRequest,
};
use lock_core::{Error, Lease, Operation, RenewRequest, Renewed};

/// How many leases are renewed in one step: a transaction may have 128 parts.
const CHUNK: usize = 50;

/// A lease that is to be renewed and that is there.
struct Living {
    names: Names,
    place: Kept<Place>,
    /// The lease that its mark is attached to.
    memory: i64,
}

impl Service {
    pub(super) async fn renew_all(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let mut answers = Vec::with_capacity(leases.len());
        for chunk in leases.chunks(CHUNK) {
            match self.renew_chunk(chunk).await {
                Ok(renewed) => answers.extend(renewed.into_iter().map(Ok)),
                Err(failure) => {
                    let error = failure.error(Operation::Renew);
                    let error =
                        |lease: &RenewRequest| Err(error.clone().on(lease.sequencer.resource()));
                    answers.extend(chunk.iter().map(error));
                }
            }
        }
        answers
    }

    /// The place is read first, because a keep-alive compares nothing.
    ///
    /// Only keep-alives that were answered in the same term as the read count, and a lease is
    /// counted from when the read began: see [`keep_alive`](Self::keep_alive).
    async fn renew_chunk(&self, leases: &[RenewRequest]) -> Result<Vec<Renewed>, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let asked = self.now();
            let (found, term) = self.living(leases).await?;
            let numbers: Vec<_> = found
                .iter()
                .flatten()
                .map(|living| living.place.lease)
                .collect();
            if numbers.is_empty() {
                return Ok(vec![Renewed::NotHolder; leases.len()]);
            }
            let (_, kept) = self.keep_alive(&numbers).await?;
            let of_this_term = kept.iter().flatten().all(|(_, said_in)| *said_in == term);
            if !of_this_term && tries < TRIES {
                continue;
            }
            let mut kept = kept.into_iter();
            let mut renewed = Vec::with_capacity(leases.len());
            for living in found {
                let length = living.as_ref().and_then(|_| kept.next().flatten());
                let length = length.filter(|(_, said_in)| *said_in == term);
                let (Some(living), Some((ttl, _))) = (living, length) else {
                    renewed.push(Renewed::NotHolder);
                    continue;
                };
                renewed.push(Renewed::Renewed(Lease::counted_from(asked, ttl)));
                if !self.remembers(living.memory, &living.names, ttl) {
                    self.remember_soon(living.names, ttl);
                }
            }
            return Ok(renewed);
        }
    }

    /// Each lease that is still held by the right holder, `None` for the others; and the term of
    /// the answer.
    async fn living(&self, leases: &[RenewRequest]) -> Result<(Vec<Option<Living>>, u64), Failure> {
        let names: Vec<_> = leases
            .iter()
            .map(|lease| {
                self.keys
                    .names(lease.sequencer.resource(), lease.sequencer.holder())
            })
            .collect();
        let ranges = names.iter().flat_map(|names| {
            let place = names.place(names.lease(0));
            [RangeRequest::key(&place), RangeRequest::key(&names.mark)]
        });
        let answer = self.read(ranges).await?;
        let term = answer.term();
        let mut ranges = answer.ranges();
        let mut living = Vec::with_capacity(leases.len());
        for (request, names) in leases.iter().zip(names) {
            let mut found = Found::read(names.place(names.lease(0)), 0, &mut ranges);
            if found.memory().round != 0 {
                found = self.find(&names).await?;
            }
            let memory = found.mark.as_ref().map_or(0, |mark| mark.lease);
            let (holder, token) = (request.sequencer.holder(), request.sequencer.token());
            let place = found.place.filter(|place| place.is(holder, token));
            living.push(place.map(|place| Living {
                names,
                place,
                memory,
            }));
        }
        Ok((living, term))
    }
}
