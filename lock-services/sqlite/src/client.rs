use std::{fmt, sync::Arc, time::Duration};

use lock_core::{
    Attempt, Error, FencingToken, Holder, Released, ResourceName, Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Forced, Grant, RenewRequest, Reply, Runtime,
        support::{
            Tasks,
            connecting::Settings,
            database::{Database, LeaseNames, Leases, Place, Renewal, WaiterKey, time_to_wait},
        },
    },
};
use sqlx::SqliteConnection;
use tokio::sync::Mutex;

use super::{
    connections::{
        Connections, Decided,
        Durability::{self, Flushed, Unflushed},
        Read,
    },
    file::File,
    look::Seen,
    row::Row,
    rows::{Asker, Rows, SILENCE},
    rule::Acquisition,
};

/// Sends requests to the file, each on a task that brings it to its end.
pub(super) struct Client {
    connections: Arc<Connections>,
    tasks: Tasks,
    names: LeaseNames,
    pub(super) seen: Mutex<Seen>,
}

impl Client {
    pub(super) async fn connect(
        file: File,
        settings: &Settings,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let timeout = settings.response_timeout;
        let client = Self {
            connections: Arc::new(Connections::to(file, timeout, Arc::clone(&runtime))),
            tasks: Tasks::here(runtime),
            names: LeaseNames::new(&settings.prefix),
            seen: Mutex::default(),
        };
        // A file that takes no writes would be opened all the same.
        client
            .write(Unflushed, |rows| {
                Box::pin(async move { Ok(rows.forget().await?) })
            })
            .await?;
        Ok(client)
    }

    pub(super) fn unix_micros(&self) -> i64 {
        self.connections.unix_micros()
    }

    /// Runs one transaction that writes. If the caller goes away meanwhile, it goes on to its end.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        decide: impl for<'r> FnOnce(&'r mut Rows<'_>) -> Decided<'r, T> + Send + 'static,
    ) -> Result<T, Error> {
        let connections = Arc::clone(&self.connections);
        let transaction = async move { connections.write(durability, decide).await };
        self.tasks.run_to_end(transaction).await?
    }

    /// Reads, beside a transaction that may be writing.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl for<'c> FnOnce(&'c mut SqliteConnection) -> Read<'c, T> + Send + 'static,
    ) -> Result<T, Error> {
        let connections = Arc::clone(&self.connections);
        let reading = async move { connections.read(read).await };
        let answer = self.tasks.run_to_end(reading).await;
        answer.map_err(|ended| Error::from(ended).outcome_not_applied())?
    }

    fn acquisition(&self, request: &AcquireRequest, queue: bool) -> Acquisition {
        let asked = self.tasks.runtime().now();
        Acquisition {
            asker: self.asker(&request.attempt),
            wait: time_to_wait(request.wait, queue, asked),
            request: request.clone(),
            asked,
        }
    }

    fn asker(
        &self,
        AttemptRef {
            resource,
            holder,
            id,
        }: &AttemptRef,
    ) -> Asker {
        self.hold(resource, *holder, id.to_string())
    }

    fn hold(&self, resource: &ResourceName, holder: Holder, attempt: String) -> Asker {
        Asker {
            lease: self.names.of(resource),
            holder: holder.kept_digest(),
            attempt,
        }
    }
}

impl Database for Client {
    type Row = Row;

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn names(&self) -> &LeaseNames {
        &self.names
    }

    /// So late a release by another process may be seen.
    fn longest_pause(&self) -> Option<Duration> {
        const LONGEST_PAUSE: Duration = Duration::from_millis(20);
        Some(LONGEST_PAUSE)
    }
}

impl Leases for Client {
    async fn acquire(&self, request: &AcquireRequest, queue: bool) -> Result<Reply, Error> {
        let asked = self.acquisition(request, queue);
        self.write(Flushed, move |rows| {
            Box::pin(async move { rows.acquire(&asked).await })
        })
        .await
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let asked = requests.iter().map(|one| self.acquisition(one, false));
        let asked: Vec<_> = asked.collect();
        self.write(Flushed, move |rows| {
            Box::pin(async move { rows.acquire_together(&asked).await })
        })
        .await
    }

    async fn renew(&self, leases: &[&RenewRequest]) -> Result<Vec<Renewal>, Error> {
        let leases = leases.iter().map(|RenewRequest { sequencer, ttl, .. }| {
            let whole = self.hold(sequencer.resource(), sequencer.holder(), String::new());
            (whole, sequencer.token().into(), ttl.get())
        });
        let leases: Vec<_> = leases.collect();
        self.write(Flushed, move |rows| {
            Box::pin(async move {
                let mut renewals = Vec::with_capacity(leases.len());
                for (whole, token, ttl) in leases {
                    renewals.push(match rows.renew(&whole, token, ttl).await? {
                        true => Renewal::Renewed,
                        false => Renewal::NotHolder,
                    });
                }
                Ok(renewals)
            })
        })
        .await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        let whole = self.hold(lease.resource(), lease.holder(), String::new());
        let token = lease.token().into();
        self.write(Unflushed, move |rows| {
            Box::pin(async move { rows.release(&whole, token, tombstone).await })
        })
        .await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        let hold = self.hold(lease.resource(), lease.holder(), attempt.to_string());
        let token = lease.token().into();
        self.write(Unflushed, move |rows| {
            Box::pin(async move { rows.release_hold(&hold, token).await })
        })
        .await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let asker = self.asker(attempt);
        self.write(Unflushed, move |rows| {
            Box::pin(async move { rows.cancel(&asker).await })
        })
        .await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let (lease, token) = (self.names.of(resource), token.into());
        self.write(Flushed, move |rows| {
            Box::pin(async move { rows.force_release(&lease, token).await })
        })
        .await
    }

    async fn list(&self, only: Option<&ResourceName>) -> Result<Vec<Row>, Error> {
        let (now, only) = (
            self.unix_micros(),
            only.map(|resource| self.names.of(resource)),
        );
        let rows = self.read(move |connection| {
            let query = sqlx::query(include_str!("list.sql"));
            let query = query.bind(now).bind(SILENCE).bind(only);
            Box::pin(query.fetch_all(connection))
        });
        Ok(rows.await?.into_iter().map(Row).collect())
    }

    async fn look(
        &self,
        attempts: &[String],
        touch: bool,
    ) -> Result<Vec<(WaiterKey, Place)>, Error> {
        self.look_in_file(attempts, touch).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
