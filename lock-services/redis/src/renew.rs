use std::collections::BTreeMap;

use futures_util::future::join_all;

use super::{
    RedisBackend,
    answers::{Refusal, RenewedWord},
    call::Call,
    error::keys_are_apart,
    lease_text,
    scripts::RENEW,
    service::refused,
};
use lock_core::{
    Error, Ttl,
    backend::{Lease, LockBackend, Moment, RenewRequest, Renewed},
};

impl RedisBackend {
    /// Renews leases with as few scripts as their keys allow. When a script fails, only its own
    /// leases fail.
    pub(super) async fn renew_all(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let batches = self.batches(leases);
        let renewing = batches.iter().map(|(&(shard, ttl), batch)| async move {
            match self.renew_batch(shard, ttl, batch).await {
                Ok(answers) => answers,
                // If the batch waited until all keys are on one server, all its leases could be
                // lost.
                Err(error) if batch.len() > 1 && keys_are_apart(&error) => {
                    self.renew_one_by_one(shard, ttl, batch).await
                }
                Err(error) => batch
                    .iter()
                    .map(|(_, lease)| Err(error.clone().on(lease.sequencer.resource())))
                    .collect(),
            }
        });
        let answers = join_all(renewing).await.into_iter().flatten();
        let places = batches.values().flatten().map(|(place, _)| *place);
        let mut placed: Vec<_> = places.zip(answers).collect();
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, answer)| answer).collect()
    }

    /// The batches of leases, by shard and ttl. Each lease has its place in the list.
    fn batches<'a>(
        &self,
        leases: &'a [RenewRequest],
    ) -> BTreeMap<(u16, Ttl), Vec<(usize, &'a RenewRequest)>> {
        let mut batches = BTreeMap::<_, Vec<_>>::new();
        for (place, lease) in leases.iter().enumerate() {
            let shard = self.part_of(lease.sequencer.resource());
            batches
                .entry((shard, lease.ttl))
                .or_default()
                .push((place, lease));
        }
        batches
    }

    /// Renews each lease with a script of its own.
    async fn renew_one_by_one(
        &self,
        shard: u16,
        ttl: Ttl,
        leases: &[(usize, &RenewRequest)],
    ) -> Vec<Result<Renewed, Error>> {
        let renewing = leases.iter().map(|lease| async move {
            match self
                .renew_batch(shard, ttl, std::slice::from_ref(lease))
                .await
            {
                Ok(answers) => answers,
                Err(error) => vec![Err(error.on(lease.1.sequencer.resource()))],
            }
        });
        join_all(renewing).await.into_iter().flatten().collect()
    }

    async fn renew_batch(
        &self,
        shard: u16,
        ttl: Ttl,
        leases: &[(usize, &RenewRequest)],
    ) -> Result<Vec<Result<Renewed, Error>>, Error> {
        let resources = leases.iter().map(|(_, lease)| lease.sequencer.resource());
        let keys = resources.map(|resource| self.service.keys.of(resource).lease());
        let mut call = Call::new(&RENEW, keys);
        call.arg(ttl.as_millis());
        for (_, RenewRequest { sequencer, .. }) in leases {
            call.arg(lease_text::full_for(sequencer, ttl));
        }
        let asked = self.service.runtime.now();
        let parse = |answer| RenewedWord::parse_all(answer, leases.len());
        let nodes = &self.renewals;
        let words = if leases.len() > 1 {
            nodes.run_at_once(shard, &call, parse).await?
        } else {
            nodes.run(shard, &call, parse).await?
        };
        let answers = leases.iter().zip(words);
        Ok(answers
            .map(|((_, request), word)| renewed(request, word, asked))
            .collect())
    }
}

fn renewed(request: &RenewRequest, word: RenewedWord, asked: Moment) -> Result<Renewed, Error> {
    match word {
        RenewedWord::Renewed => Ok(Renewed::Renewed(Lease::counted_from(
            asked,
            request.ttl.get(),
        ))),
        RenewedWord::NotHolder => Ok(Renewed::NotHolder),
        RenewedWord::Broken => {
            let error = refused(Refusal::BrokenLease);
            Err(error.on(request.sequencer.resource()))
        }
    }
}
