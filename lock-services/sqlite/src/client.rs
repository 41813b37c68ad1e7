use std::{fmt, sync::Arc, time::Duration};

use lock_core::{
    Attempt, Error, FencingToken, Holder, Released, ResourceName, Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Forced, Grant, Moment, RenewRequest, Reply, Runtime,
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
    requests::Acquisition,
    row::Row,
    rows::{Rows, SILENCE},
    visit::{Asker, Visit},
};

/// Sends requests to the file. Each runs on a task that brings it to its end.
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
        // SQLite would also open a file that takes no writes.
        client
            .write(Unflushed, |rows| {
                Box::pin(async move { rows.forget().await.map(Ok) })
            })
            .await?;
        Ok(client)
    }

    pub(super) fn unix_micros(&self) -> i64 {
        self.connections.unix_micros()
    }

    /// Runs one transaction that writes. If the caller goes away, the transaction goes on to its
    /// end.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        decide: impl for<'r> FnOnce(&'r mut Rows<'_>) -> Decided<'r, T> + Send + 'static,
    ) -> Result<T, Error> {
        let connections = Arc::clone(&self.connections);
        let transaction = async move { connections.write(durability, decide).await };
        self.tasks.run_to_end(transaction).await?
    }

    /// Reads, while another transaction may be writing.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl for<'c> FnOnce(&'c mut SqliteConnection) -> Read<'c, T> + Send + 'static,
    ) -> Result<T, Error> {
        let connections = Arc::clone(&self.connections);
        let reading = async move { connections.read(read).await };
        let answer = self.tasks.run_to_end(reading).await;
        answer.map_err(|ended| Error::from(ended).outcome_not_applied())?
    }

    /// Ends the lease or the attempt of the asker. A power cut may take the end back.
    async fn end<T: Send + 'static>(
        &self,
        asker: Asker,
        rule: impl FnOnce(&mut Visit) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.write(Unflushed, move |rows| {
            Box::pin(async move { rows.decide(&asker, rule).await.map(Ok) })
        })
        .await
    }

    fn acquisition(&self, request: &AcquireRequest, queue: bool) -> Acquisition {
        let asker = self.asker(&request.attempt);
        Acquisition {
            wait: time_to_wait(request.wait, queue, asker.asked),
            request: request.clone(),
            asker,
        }
    }

    fn asker(&self, attempt: &AttemptRef) -> Asker {
        Asker {
            attempt: Some(attempt.id.to_string()),
            ..self.whole(&attempt.resource, attempt.holder)
        }
    }

    /// The asker that stands for the whole acquisition of a lease.
    fn whole(&self, resource: &ResourceName, holder: Holder) -> Asker {
        Asker {
            lease: self.names.of(resource),
            holder: holder.kept_digest(),
            attempt: None,
            asked: self.tasks.runtime().now(),
        }
    }

    fn of_lease(&self, lease: &Sequencer) -> (Asker, FencingToken) {
        (self.whole(lease.resource(), lease.holder()), lease.token())
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

    /// The time after which a release by another process is seen at the latest.
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
            let (whole, token) = self.of_lease(sequencer);
            (whole, token, ttl.get())
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
                Ok(Ok(renewals))
            })
        })
        .await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        let (whole, token) = self.of_lease(lease);
        self.end(whole, move |visit| visit.release(token, tombstone))
            .await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        let (mut hold, token) = self.of_lease(lease);
        hold.attempt = Some(attempt.to_string());
        self.end(hold, move |visit| visit.release_hold(token)).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.end(self.asker(attempt), Visit::cancel).await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let lease = Asker {
            lease: self.names.of(resource),
            holder: String::new(),
            attempt: None,
            asked: Moment::default(),
        };
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
