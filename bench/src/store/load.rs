//! Clients that run one transaction after the other, concurrently.

use std::time::Instant;

use fenced_store::{Dialect, FencedStore};
use futures_util::future::try_join_all;
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};

use crate::{figure::BoxError, paired::Samples};

/// The number of clients, and their common settings.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) clients: u32,
    /// The number of transactions of each client in one turn.
    pub(super) transactions: u32,
    /// Whether all clients have one resource, although their rows are separate. Otherwise each
    /// client has a resource of its own.
    pub(super) shared_resource: bool,
}

pub(super) const ONE_CLIENT: Load = Load {
    clients: 1,
    transactions: 50,
    shared_resource: false,
};

/// Many clients, each with a resource of its own.
pub(super) const MANY_CLIENTS: Load = Load {
    clients: 32,
    transactions: 8,
    shared_resource: false,
};

/// Many clients with one resource for all.
pub(super) const ONE_RESOURCE: Load = Load {
    shared_resource: true,
    ..MANY_CLIENTS
};

impl Load {
    /// Claims, for every client, the grant under which it is going to write.
    pub(super) async fn claim<DB: Dialect>(
        self,
        store: &FencedStore<DB>,
    ) -> Result<Vec<Sequencer>, BoxError> {
        let mut grants: Vec<Sequencer> = Vec::new();
        for client in 0..self.clients {
            if let Some(first) = grants.first().filter(|_| self.shared_resource) {
                let first = first.clone();
                grants.push(first);
                continue;
            }
            let resource = ResourceName::new(format!("account:{client}"))?;
            let grant = Sequencer::new(
                Issuer::new("redis")?,
                resource,
                FencingToken::MIN,
                Holder::random(),
            );
            store.claim(&grant).await?;
            grants.push(grant);
        }
        Ok(grants)
    }

    /// Runs the transactions of every client, and records the time of each.
    #[expect(
        clippy::future_not_send,
        reason = "the clients of a bench share one thread"
    )]
    pub(super) async fn turn<F>(
        self,
        samples: &mut Samples,
        transaction: impl Fn(u32) -> F,
    ) -> Result<(), BoxError>
    where
        F: Future<Output = Result<(), BoxError>>,
    {
        let transaction = &transaction;
        let client = async |client| {
            let mut times = Vec::new();
            for _ in 0..self.transactions {
                let started = Instant::now();
                transaction(client).await?;
                times.push(started.elapsed().as_secs_f64() * 1e6);
            }
            Ok::<_, BoxError>(times)
        };
        for times in try_join_all((0..self.clients).map(client)).await? {
            times.into_iter().for_each(|time| samples.push(time));
        }
        Ok(())
    }
}
